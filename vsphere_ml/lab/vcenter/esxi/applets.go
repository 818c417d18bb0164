package esxi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/interp"
)

// busybox runs the applet that its first argument names.
func busybox(p *process) error {
	if len(p.args) < 2 {
		return p.fail(1, "BusyBox (stand-in of the vsml lab)")
	}
	p.args = p.args[1:]
	return p.run()
}

// sh runs -c SCRIPT, a file, or standard input.
func sh(p *process) error {
	switch {
	case len(p.args) > 2 && p.args[1] == "-c":
		var parameters []string
		if len(p.args) > 4 {
			parameters = p.args[4:]
		}
		return p.interpret(strings.NewReader(p.args[2]), parameters...)
	case len(p.args) > 1 && p.args[1] != "-s" && p.args[1] != "-":
		script, err := p.files.read(absolute(p.dir, p.args[1]))
		if err != nil {
			return p.fail(2, "sh: can't open '%s': No such file or directory", p.args[1])
		}
		return p.interpret(bytes.NewReader(script), p.args[2:]...)
	}
	return p.interpret(oneByte{p.stdin})
}

// oneByte keeps the parser from reading more than the script: what follows it is for the commands in it.
type oneByte struct{ reader io.Reader }

func (o oneByte) Read(into []byte) (int, error) { return o.reader.Read(into[:min(1, len(into))]) }

// timeout runs a command and ends it after so many seconds, with BusyBox's status 143.
func timeout(p *process) error {
	words := p.args[1:]
	for len(words) > 1 && strings.HasPrefix(words[0], "-") {
		words = words[2:]
	}
	if len(words) < 2 {
		return p.fail(1, "Usage: timeout [-s SIG] SECS PROG ARGS")
	}
	seconds, err := strconv.ParseFloat(words[0], 64)
	if err != nil {
		return p.fail(1, "timeout: invalid number '%s'", words[0])
	}
	ctx, cancel := context.WithTimeout(p.ctx, time.Duration(seconds*float64(time.Second)))
	defer cancel()
	inner := *p
	inner.ctx, inner.args = ctx, words[1:]
	err = inner.run()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return interp.ExitStatus(143)
	}
	return err
}

func pause(p *process) error {
	if len(p.args) < 2 {
		return p.fail(1, "Usage: sleep N")
	}
	seconds, err := strconv.ParseFloat(p.args[1], 64)
	if err != nil {
		return p.fail(1, "sleep: invalid number '%s'", p.args[1])
	}
	select {
	case <-time.After(time.Duration(seconds * float64(time.Second))):
		return nil
	case <-p.ctx.Done():
		return interp.ExitStatus(143)
	}
}

func fails(*process) error { return interp.ExitStatus(1) }

// inputs are the named files, or standard input.
func (p *process) inputs(names []string) ([]byte, error) {
	if len(names) == 0 {
		return io.ReadAll(p.stdin)
	}
	var all []byte
	for _, name := range names {
		if name == "-" {
			text, _ := io.ReadAll(p.stdin)
			all = append(all, text...)
			continue
		}
		text, err := p.files.read(absolute(p.dir, name))
		if err != nil {
			return all, p.fail(1, "%s: can't open '%s': No such file or directory", path.Base(p.args[0]), name)
		}
		all = append(all, text...)
	}
	return all, nil
}

func cat(p *process) error {
	text, err := p.inputs(p.args[1:])
	p.print(string(text))
	return err
}

// grep knows -i, -v, -q, -c, -E, -F, -w and -e.
func grep(p *process) error {
	var letters, pattern string
	words := p.args[1:]
	for len(words) > 0 && strings.HasPrefix(words[0], "-") && len(words[0]) > 1 {
		letters, words = letters+words[0][1:], words[1:]
	}
	if len(words) == 0 {
		return p.fail(2, "Usage: grep [-HhnlLoqvsriwFE] [-m N] [-A|B|C N] { PATTERN | -e PATTERN... | -f FILE... } [FILE]...")
	}
	pattern, words = words[0], words[1:]
	if strings.Contains(letters, "F") {
		pattern = regexp.QuoteMeta(pattern)
	}
	if strings.Contains(letters, "w") {
		pattern = `\b(?:` + pattern + `)\b`
	}
	if strings.Contains(letters, "i") {
		pattern = "(?i)" + pattern
	}
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		return p.fail(2, "grep: bad regex '%s'", pattern)
	}
	text, err := p.inputs(words)
	if err != nil {
		return err
	}
	return p.filter(text, wanted, letters)
}

func (p *process) filter(text []byte, wanted *regexp.Regexp, letters string) error {
	found := 0
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if wanted.Match(lines.Bytes()) == strings.Contains(letters, "v") {
			continue
		}
		found++
		if !strings.ContainsAny(letters, "qc") {
			p.printf("%s", lines.Text())
		}
	}
	if strings.Contains(letters, "c") {
		p.printf("%d", found)
	}
	if found == 0 {
		return interp.ExitStatus(1)
	}
	return nil
}

// head and tail know -n N, -N, -c N and -q.
func head(p *process) error {
	return p.ends(func(parts []string, count int) []string { return parts[:max(0, min(count, len(parts)))] })
}

func tail(p *process) error {
	return p.ends(func(parts []string, count int) []string { return parts[max(0, len(parts)-max(0, count)):] })
}

// ends prints one end of each file: so many lines, or bytes.
func (p *process) ends(take func(parts []string, count int) []string) error {
	lines, size, words := 10, -1, p.args[1:]
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		word := words[0]
		words = words[1:]
		switch {
		case word == "-q":
		case (word == "-n" || word == "-c") && len(words) > 0:
			number, _ := strconv.Atoi(words[0])
			if words = words[1:]; word == "-c" {
				size = number
			} else {
				lines = number
			}
		default:
			lines, _ = strconv.Atoi(strings.TrimPrefix(strings.TrimPrefix(word, "-"), "n"))
		}
	}
	if len(words) == 0 {
		words = []string{"-"}
	}
	for _, name := range words {
		text, err := p.inputs([]string{name})
		if err != nil {
			return err
		}
		if size >= 0 {
			p.print(strings.Join(take(eachByte(text), size), ""))
			continue
		}
		p.print(strings.Join(take(slices.Collect(strings.Lines(string(text))), lines), ""))
	}
	return nil
}

func eachByte(text []byte) []string {
	parts := make([]string, len(text))
	for i := range text {
		parts[i] = string(text[i : i+1])
	}
	return parts
}

// wc counts lines with -l, bytes otherwise.
func wc(p *process) error {
	words, count, total := p.args[1:], func(text []byte) int { return len(text) }, 0
	if len(words) > 0 && strings.HasPrefix(words[0], "-") {
		if words[0] == "-l" {
			count = func(text []byte) int { return bytes.Count(text, []byte("\n")) }
		}
		words = words[1:]
	}
	if len(words) == 0 {
		text, err := p.inputs(nil)
		p.printf("%d", count(text))
		return err
	}
	for _, name := range words {
		text, err := p.inputs([]string{name})
		if err != nil {
			return err
		}
		total += count(text)
		p.printf("%8d %s", count(text), name)
	}
	if len(words) > 1 {
		p.printf("%8d total", total)
	}
	return nil
}

func list(p *process) error {
	status := error(nil)
	for _, name := range operands(p.args[1:], p.dir) {
		names, isFolder := p.files.list(p.host, absolute(p.dir, name))
		if isFolder {
			for _, held := range names {
				p.printf("%s", held)
			}
			continue
		}
		if _, err := p.files.stat(p.host, absolute(p.dir, name)); err != nil {
			status = p.fail(1, "ls: %s: No such file or directory", name)
			continue
		}
		p.printf("%s", name)
	}
	return status
}

// operands are the words that are no options, or else the one given.
func operands(words []string, otherwise string) []string {
	var found []string
	for _, word := range words {
		if !strings.HasPrefix(word, "-") {
			found = append(found, word)
		}
	}
	if len(found) == 0 {
		return []string{otherwise}
	}
	return found
}

// mktemp makes a file, or with -d a folder.
func mktemp(p *process) error {
	template := operands(p.args[1:], "/tmp/tmp.XXXXXX")[0]
	name := absolute(p.dir, strings.TrimRight(template, "X")+rand.Text()[:8])
	if len(p.args) > 1 && p.args[1] == "-d" {
		if !p.files.makeFolder(name) {
			return p.fail(1, "mktemp: %s: No such file or directory", template)
		}
		p.printf("%s", name)
		return nil
	}
	if _, err := p.files.open(name, os.O_CREATE|os.O_WRONLY); err != nil {
		return p.fail(1, "mktemp: %s: No such file or directory", template)
	}
	p.printf("%s", name)
	return nil
}

func remove(p *process) error {
	for _, name := range operands(p.args[1:], "/dev/null") {
		p.files.remove(absolute(p.dir, name))
	}
	return nil
}

func which(p *process) error {
	for _, name := range p.args[1:] {
		if interp.IsBuiltin(name) && name != "test" {
			p.printf("%s", name)
			continue
		}
		run, path := find(p.host, name)
		if run == nil {
			return interp.ExitStatus(1)
		}
		p.printf("%s", path)
	}
	return nil
}

// test is [ of the shell, over the session's files; the interpreter's own would look at the machine's.
func test(p *process) error {
	words := p.args[1:]
	if words[0] == "[" {
		if words[len(words)-1] != "]" {
			return p.fail(2, "sh: missing ]")
		}
		words = words[:len(words)-1]
	}
	holds, err := p.holds(words[1:])
	if err != nil {
		return p.fail(2, "sh: %v", err)
	}
	if !holds {
		return interp.ExitStatus(1)
	}
	return nil
}

func (p *process) holds(words []string) (bool, error) {
	for i, word := range words {
		if i > 0 && (word == "-a" || word == "-o") {
			left, err := p.holds(words[:i])
			if err != nil {
				return false, err
			}
			right, err := p.holds(words[i+1:])
			return word == "-a" && left && right || word == "-o" && (left || right), err
		}
	}
	switch {
	case len(words) == 0:
		return false, nil
	case words[0] == "!":
		holds, err := p.holds(words[1:])
		return !holds, err
	case len(words) == 1:
		return words[0] != "", nil
	case len(words) == 2:
		return p.unary(words[0], words[1])
	case len(words) == 3:
		return binary(words[0], words[1], words[2])
	}
	return false, fmt.Errorf("%s: unknown operand", words[0])
}

func (p *process) unary(operator, word string) (bool, error) {
	switch operator {
	case "-n":
		return word != "", nil
	case "-z":
		return word == "", nil
	}
	info, err := p.files.stat(p.host, absolute(p.dir, word))
	switch operator {
	case "-e", "-r", "-w":
		return err == nil, nil
	case "-f":
		return err == nil && !info.IsDir(), nil
	case "-d":
		return err == nil && info.IsDir(), nil
	case "-x":
		return err == nil && info.Mode()&0o111 != 0, nil
	case "-s":
		return err == nil && info.Size() > 0, nil
	}
	return false, fmt.Errorf("%s: unknown operand", operator)
}

func binary(left, operator, right string) (bool, error) {
	switch operator {
	case "=", "==":
		return left == right, nil
	case "!=":
		return left != right, nil
	}
	a, errA := strconv.Atoi(left)
	b, errB := strconv.Atoi(right)
	if errA != nil || errB != nil {
		return false, fmt.Errorf("%s: bad number", left)
	}
	holds, known := map[string]bool{"-eq": a == b, "-ne": a != b, "-lt": a < b, "-le": a <= b, "-gt": a > b, "-ge": a >= b}[operator]
	if !known {
		return false, fmt.Errorf("%s: unknown operand", operator)
	}
	return holds, nil
}
