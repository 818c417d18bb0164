package server

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"golang.org/x/crypto/ssh"

	"vsml.dev/lab/vcenter/esxi"
	"vsml.dev/lab/vcenter/rack"
)

// What the lab keeps in its state folder about signing in to hosts, all of it readable by its owner only.
const (
	esxiSecret   = "esxi_secret"      // what the hosts' keys are made of
	esxiPassword = "esxi_password"    // root's, on every host
	esxiKey      = "esxi_key"         // a private key that root may sign in with, in OpenSSH's format
	esxiHosts    = "esxi_hosts.json"  // each host's address and fingerprint
	knownHosts   = "esxi_known_hosts" // the hosts' keys, in OpenSSH's format
)

// HostShell is where a host's shell is reached, and how it proves itself.
type HostShell struct {
	Name        string `json:"name"`
	Address     string `json:"address"`
	Port        int    `json:"port"`
	Fingerprint string `json:"fingerprint"`
}

// shells are the SSH services of all hosts.
type shells struct {
	password   string
	authorized ssh.PublicKey
	secret     []byte
	port       int
}

// openShells makes the keys and tells in files where the hosts will be found. Nothing listens yet.
//
// Each host has a loopback address of its own, and all listen on vCenter's port: nobody else's, as long as vCenter has
// it on 127.0.0.1.
func (l *Lab) openShells() error {
	if err := l.makeShellKeys(); err != nil {
		return err
	}
	var told []HostShell
	for _, name := range l.Rack.Hosts() {
		told = append(told, l.Shell(name))
	}
	return l.tellShells(told)
}

// makeShellKeys makes what hosts prove themselves with, and what root does, and finds the port.
func (l *Lab) makeShellKeys() (err error) {
	_, port, err := net.SplitHostPort(l.hostPort)
	if err != nil {
		return err
	}
	if _, err := fmt.Sscan(port, &l.shells.port); err != nil {
		return err
	}
	if l.shells.secret, err = l.stored(esxiSecret, randomBytes); err != nil {
		return err
	}
	password, err := l.stored(esxiPassword, func() ([]byte, error) { return []byte(rand.Text() + "\n"), nil })
	if err != nil {
		return err
	}
	l.shells.password = strings.TrimSpace(string(password))
	l.shells.authorized, err = l.keyForRoot()
	return err
}

// stored is the content of a file in the state folder, made when there is none yet.
func (l *Lab) stored(name string, make func() ([]byte, error)) ([]byte, error) {
	path := filepath.Join(l.options.StateDir, name)
	content, err := os.ReadFile(path)
	if !errors.Is(err, os.ErrNotExist) {
		return content, err
	}
	if content, err = make(); err != nil {
		return nil, err
	}
	return content, os.WriteFile(path, content, 0o600)
}

func randomBytes() ([]byte, error) {
	secret := make([]byte, 32)
	_, err := rand.Read(secret)
	return secret, err
}

func (l *Lab) keyForRoot() (ssh.PublicKey, error) {
	text, err := l.stored(esxiKey, func() ([]byte, error) {
		_, private, err := ed25519.GenerateKey(nil)
		if err != nil {
			return nil, err
		}
		block, err := ssh.MarshalPrivateKey(private, "root of the vsml lab's hosts")
		return pem.EncodeToMemory(block), err
	})
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", esxiKey, err)
	}
	return signer.PublicKey(), nil
}

func (l *Lab) tellShells(told []HostShell) error {
	var known strings.Builder
	for _, shell := range told {
		fmt.Fprintf(&known, "[%s]:%d %s", shell.Address, shell.Port, ssh.MarshalAuthorizedKey(l.hostKey(shell.Name).PublicKey()))
	}
	text, err := json.MarshalIndent(told, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(l.options.StateDir, esxiHosts), append(text, '\n'), 0o600),
		os.WriteFile(filepath.Join(l.options.StateDir, knownHosts), []byte(known.String()), 0o600))
}

// Shell is where the host's shell is reached while its SSH service runs.
func (l *Lab) Shell(name string) HostShell {
	machine := l.site.hosts[name]
	return HostShell{Name: name, Address: machine.address, Port: l.shells.port, Fingerprint: ssh.FingerprintSHA256(l.hostKey(name).PublicKey())}
}

// rsaKey is a 2048-bit key in the state folder, as ESXi makes one at its first boot (vSphere Security guide, "ESXi SSH keys").
func (l *Lab) rsaKey(name string) ssh.Signer {
	text, err := l.stored("esxi_rsa_"+name, func() ([]byte, error) {
		private, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return nil, err
		}
		block, err := ssh.MarshalPrivateKey(private, "")
		return pem.EncodeToMemory(block), err
	})
	if err != nil {
		panic(err) // the state folder was written a moment ago
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		panic(err)
	}
	return signer
}

// hostKey is the same for the host whenever it is asked for.
func (l *Lab) hostKey(name string) ssh.Signer {
	if own, _ := l.File.HostNamed(name); own.SSHKey == "rsa" {
		return l.rsaKey(name)
	}
	digest := hmac.New(sha256.New, l.shells.secret)
	digest.Write([]byte(name))
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(digest.Sum(nil)))
	if err != nil {
		panic(err) // the seed has the length that ed25519 wants
	}
	return signer
}

// loopback is the address of the nth host: 127.1.0.1, 127.1.0.2, …
func loopback(number int) string {
	return fmt.Sprintf("127.%d.%d.%d", 1+number/(250*250), number/250%250, 1+number%250)
}

// runSSH starts or stops the host's SSH service.
func (l *Lab) runSSH(machine *esx, run bool) error {
	if machine.ssh == nil {
		access := esxi.Access{HostKey: l.hostKey(machine.name), Password: l.shells.password, Authorized: l.shells.authorized}
		access.Admits = func(user string) bool {
			return machine.access.admits(&simulator.Context{Map: l.Context.Map}, user)
		}
		machine.ssh = esxi.NewServer(hostShell{l, machine}, access, func() bool { return l.view(machine).Fails("ssh-refused") })
	}
	if !run {
		machine.ssh.Stop(false)
		return nil
	}
	return machine.ssh.Start(net.JoinHostPort(machine.address, fmt.Sprint(l.shells.port)))
}

// hostShell is a host as its shell sees it.
type hostShell struct {
	lab *Lab
	esx *esx
}

func (h hostShell) View() rack.View { return h.lab.view(h.esx) }

func (h hostShell) Product() (version, build string) {
	return h.esx.model.ESXiVersion, h.esx.model.ESXiBuild
}

func (h hostShell) SetFirmware(address, name, value string) error {
	return h.lab.Rack.SetFirmware(h.esx.name, address, name, value)
}

func (h hostShell) SetMIG(address string, on bool) (pending bool, err error) {
	pending, err = h.lab.Rack.SetMIG(h.esx.name, address, on)
	h.lab.refresh(&simulator.Context{Map: h.lab.Context.Map}, h.esx.name)
	return pending, err
}

func (h hostShell) RestartXorg() {
	h.lab.restartXorg(&simulator.Context{Map: h.lab.Context.Map}, h.esx)
}

// Reboot reboots the host in maintenance mode; ESXi's own reboot does not ask, but a lab's client should.
func (h hostShell) Reboot() error {
	ctx := &simulator.Context{Map: h.lab.Context.Map}
	system := &host{h.esx.system, h.lab}
	if !system.inMaintenance(ctx) {
		return errors.New("the host is not in maintenance mode")
	}
	if !system.goDown(ctx, true) {
		return errors.New("the host is going down already")
	}
	return nil
}

// Commands are the lab's own; the simulator's are for the vSphere API alone.
func (h hostShell) Commands() []esxi.Command {
	var commands []esxi.Command
	for _, own := range esxcliCommands {
		commands = append(commands, own.forShell(h))
	}
	return commands
}
