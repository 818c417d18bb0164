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
	answers func(command string) Answer // nil where a shell is
	begun   sync.Once

	terminal bool // a person sits at it
}

func newSession(host Host, channel ssh.Channel, answers func(string) Answer) *session {
	return &session{host: host, channel: channel, answers: answers}
}

func (s *session) serve(requests <-chan *ssh.Request) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer s.channel.Close()
	for request := range requests {
		accepted, begin := false, (func())(nil)
		switch request.Type {
		case "pty-req":
			accepted, s.terminal = true, true
		case "exec":
			var wanted struct{ Command string }
			if ssh.Unmarshal(request.Payload, &wanted) == nil {
				accepted, begin = true, func() { go s.execute(ctx, wanted.Command) }
			}
		case "shell":
			if accepted = s.answers == nil; accepted {
				begin = func() { go s.run(ctx, s.shell()) }
			}
		case "window-change", "signal":
			accepted = true
		}
		if request.WantReply {
			_ = request.Reply(accepted, nil)
		}
		// Not before the reply, as with sshd: a command that has ended would close the channel without one.
		if begin != nil {
			s.begun.Do(begin)
		}
	}
}

func (s *session) shell() program {
	if s.terminal {
		return (*process).converse
	}
	return sh
}

// execute runs a command, or gives what a record has of it.
func (s *session) execute(ctx context.Context, command string) {
	if s.answers == nil {
		s.run(ctx, sh, "-c", command)
		return
	}
	answer := s.answers(command)
	_, _ = io.WriteString(s.channel, answer.Out)
	_, _ = io.WriteString(s.channel.Stderr(), answer.Err)
	s.end(answer.Status)
}

// end tells the exit status and closes.
func (s *session) end(status uint32) {
	_, _ = s.channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
	_ = s.channel.CloseWrite()
	_ = s.channel.Close()
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
	s.end(uint32(code))
}

func environment(host Host) expand.Environ {
	return expand.ListEnviron("PATH="+searched, "HOME=/", "USER=root", "LOGNAME=root", "SHELL=/bin/sh", "TERM=dumb",
		"HOSTNAME="+shortName(host))
}
