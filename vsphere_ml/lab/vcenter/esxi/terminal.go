package esxi

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"
	"mvdan.cc/sh/v3/syntax"
)

// converse reads lines from a person at a terminal and runs each, until the shell is left. What runs has no standard
// input, and a statement must fit a line.
func (p *process) converse() error {
	screen := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{p.stdin, p.stdout}, fmt.Sprintf("[root@%s:~] ", shortName(p.host)))
	runner, err := shell(p.host, p.files, p.env, strings.NewReader(""), screen, screen)
	if err != nil {
		return err
	}
	var last error
	for !runner.Exited() && p.ctx.Err() == nil {
		line, err := screen.ReadLine()
		if err != nil {
			break
		}
		parsed, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(line), "")
		if err != nil {
			fmt.Fprintf(screen, "sh: %v\n", err)
			continue
		}
		for _, statement := range parsed.Stmts {
			if last = runner.Run(p.ctx, statement); runner.Exited() {
				break
			}
		}
	}
	return status(last)
}

func shortName(host Host) string { return strings.SplitN(host.View().Name, ".", 2)[0] }
