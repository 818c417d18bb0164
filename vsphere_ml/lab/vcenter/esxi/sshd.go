package esxi

import (
	"crypto/subtle"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Access is who may sign in as root, and what the host proves itself with.
type Access struct {
	HostKey    ssh.Signer
	Password   string
	Authorized ssh.PublicKey
	Admits     func(user string) bool // false under lockdown, whatever the user proves
	// Answers, where it is given, answers every command in the shell's place, as a site record does.
	Answers func(command string) Answer
}

// Answer is what a command printed, and its exit status.
type Answer struct {
	Out, Err string
	Status   uint32
}

// banner is shown before anybody signs in, and the version to every client: nobody shall take the lab for an ESXi.
const (
	banner  = "vsml lab: a simulated ESXi host; there is no hardware behind it\n"
	version = "SSH-2.0-vsml-lab"
)

// handshake is how long a client may take to sign in.
const handshake = 30 * time.Second

// Server is the SSH service of one host.
type Server struct {
	host    Host
	access  Access
	refuses func() bool // connections are closed at once

	mu       sync.Mutex
	listener net.Listener // nil while the service is stopped
	open     map[net.Conn]struct{}
}

// NewServer is a stopped service.
func NewServer(host Host, access Access, refuses func() bool) *Server {
	return &Server{host: host, access: access, refuses: refuses, open: map[net.Conn]struct{}{}}
}

// Start listens on the address.
func (s *Server) Start(address string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	s.listener = listener
	go s.accept(listener)
	return nil
}

// Stop refuses new connections. ESXi's sessions outlive its service; with cut they end too, as when the host goes down.
func (s *Server) Stop(cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		_ = s.listener.Close()
		s.listener = nil
	}
	for connection := range s.open {
		if cut {
			_ = connection.Close()
		}
	}
}

// Runs tells whether the service listens.
func (s *Server) Runs() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listener != nil
}

func (s *Server) accept(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		if s.refuses() {
			_ = connection.Close()
			continue
		}
		s.mu.Lock()
		s.open[connection] = struct{}{}
		s.mu.Unlock()
		go s.serve(connection)
	}
}

func (s *Server) serve(connection net.Conn) {
	defer func() {
		_ = connection.Close()
		s.mu.Lock()
		delete(s.open, connection)
		s.mu.Unlock()
	}()
	_ = connection.SetDeadline(time.Now().Add(handshake))
	session, channels, requests, err := ssh.NewServerConn(connection, s.config())
	if err != nil {
		return
	}
	_ = connection.SetDeadline(time.Time{})
	defer session.Close()
	go ssh.DiscardRequests(requests)
	for asked := range channels {
		if asked.ChannelType() != "session" {
			_ = asked.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		channel, requests, err := asked.Accept()
		if err != nil {
			return
		}
		go newSession(s.host, channel, s.access.Answers).serve(requests)
	}
}

// config lets root in by password, keyboard-interactive password, or the lab's key.
func (s *Server) config() *ssh.ServerConfig {
	known := func(meta ssh.ConnMetadata, password string) error {
		if s.access.Admits(meta.User()) && meta.User() == "root" && subtle.ConstantTimeCompare([]byte(password), []byte(s.access.Password)) == 1 {
			return nil
		}
		return errors.New("wrong user or password")
	}
	config := &ssh.ServerConfig{
		ServerVersion:  version,
		MaxAuthTries:   6,
		BannerCallback: func(ssh.ConnMetadata) string { return banner },
		PasswordCallback: func(meta ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			return nil, known(meta, string(password))
		},
		KeyboardInteractiveCallback: func(meta ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			answers, err := ask("", "", []string{"Password: "}, []bool{false})
			if err != nil || len(answers) != 1 {
				return nil, errors.New("no answer")
			}
			return nil, known(meta, answers[0])
		},
		PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if s.access.Admits(meta.User()) && meta.User() == "root" && s.access.Authorized != nil && string(key.Marshal()) == string(s.access.Authorized.Marshal()) {
				return nil, nil
			}
			return nil, errors.New("unknown key")
		},
	}
	config.AddHostKey(s.access.HostKey)
	return config
}
