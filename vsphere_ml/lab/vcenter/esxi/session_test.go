package esxi

import (
	"crypto/ed25519"
	"testing"

	"golang.org/x/crypto/ssh"
)

func signer(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	made, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// signIn starts a service whose commands end at once, and signs in to it.
func signIn(t *testing.T) *ssh.Client {
	t.Helper()
	access := Access{
		HostKey: signer(t), Password: "secret",
		Admits:  func(string) bool { return true },
		Answers: func(command string) Answer { return Answer{Out: command} },
	}
	server := NewServer(nil, access, func() bool { return false })
	if err := server.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop(true) })
	client, err := ssh.Dial("tcp", server.listener.Addr().String(), &ssh.ClientConfig{
		User: "root", Auth: []ssh.AuthMethod{ssh.Password("secret")}, HostKeyCallback: ssh.FixedHostKey(access.HostKey.PublicKey()),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestACommandThatEndsAtOnceIsAcceptedBefore(t *testing.T) {
	client := signIn(t)
	for number := range 2000 {
		session, err := client.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		printed, err := session.Output("true")
		if err != nil || string(printed) != "true" {
			t.Fatalf("command %d: %q, %v", number, printed, err)
		}
		_ = session.Close()
	}
}
