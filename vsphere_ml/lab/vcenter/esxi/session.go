package esxi

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/crypto/ssh"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
)

// session is one SSH session: a command, or a shell that reads commands from its standard input.
type session struct {
	host    Host
	channel ssh.Channel
	begun   sync.Once

	terminal bool // a person sits at it
}

func newSession(host Host, channel ssh.Channel) *session {
	return &session{host: host, channel: channel}
}

func (s *session) serve(requests <-chan *ssh.Request) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer s.channel.Close()
	for request := range requests {
		accepted := false
		switch request.Type {
		case "pty-req":
			accepted, s.terminal = true, true
		case "exec":
			var wanted struct{ Command string }
			if ssh.Unmarshal(request.Payload, &wanted) == nil {
				accepted = true
				s.begun.Do(func() { go s.run(ctx, sh, "-c", wanted.Command) })
			}
		case "shell":
			accepted = true
			s.begun.Do(func() { go s.run(ctx, s.shell()) })
		case "window-change", "signal":
			accepted = true
		}
		if request.WantReply {
			_ = request.Reply(accepted, nil)
		}
	}
}

func (s *session) shell() program {
	if s.terminal {
		return (*process).converse
	}
	return sh
}

func (s *session) run(ctx context.Context, run program, words ...string) {
	stdin, fill, err := os.Pipe() // shared by the shell and what it runs; of anything else each would take its own share
	if err != nil {
		return
	}
	defer stdin.Close()
	go func() {
		_, _ = io.Copy(fill, s.channel)
		_ = fill.Close()
	}()
	p := &process{
		ctx: ctx, host: s.host, args: append([]string{"sh"}, words...), dir: "/", files: newFiles(), env: environment(s.host),
		stdin: stdin, stdout: s.channel, stderr: s.channel.Stderr(),
	}
	var code interp.ExitStatus
	errors.As(run(p), &code)
	_, _ = s.channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(code)}))
	_ = s.channel.CloseWrite()
	_ = s.channel.Close()
}

func environment(host Host) expand.Environ {
	return expand.ListEnviron("PATH="+searched, "HOME=/", "USER=root", "LOGNAME=root", "SHELL=/bin/sh", "TERM=dumb",
		"HOSTNAME="+shortName(host))
}
