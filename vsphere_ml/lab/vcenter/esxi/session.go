package esxi

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
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
		case "exec":
			var wanted struct{ Command string }
			if ssh.Unmarshal(request.Payload, &wanted) == nil {
				accepted = true
				s.begun.Do(func() { go s.run(ctx, "-c", wanted.Command) })
			}
		case "shell":
			accepted = true
			s.begun.Do(func() { go s.run(ctx) })
		case "pty-req", "env", "window-change", "signal":
			accepted = request.Type != "env"
		}
		if request.WantReply {
			_ = request.Reply(accepted, nil)
		}
	}
}

func (s *session) run(ctx context.Context, words ...string) {
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
	errors.As(sh(p), &code)
	_, _ = s.channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(code)}))
	_ = s.channel.CloseWrite()
	_ = s.channel.Close()
}

func environment(host Host) expand.Environ {
	return expand.ListEnviron("PATH="+searched, "HOME=/", "USER=root", "LOGNAME=root", "SHELL=/bin/sh", "TERM=dumb",
		"HOSTNAME="+strings.SplitN(host.View().Name, ".", 2)[0])
}
