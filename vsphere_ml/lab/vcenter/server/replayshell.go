package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"vsml.dev/lab/vcenter/esxi"
)

// recordedCommand is one file of a record: a command that a host was asked, and what it printed.
type recordedCommand struct {
	Machine string   `json:"machine"`
	Command string   `json:"command"`
	Status  int      `json:"status"`
	Out     []string `json:"out"`
	Err     []string `json:"err"`
}

// addCommand keeps what a host printed, by the host's pseudonym and the command.
func (r *Replay) addCommand(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var each recordedCommand
	if err := json.Unmarshal(text, &each); err != nil {
		return err
	}
	if r.printed[each.Machine] == nil {
		r.printed[each.Machine] = map[string]esxi.Answer{}
	}
	r.printed[each.Machine][each.Command] = esxi.Answer{Out: lines(each.Out), Err: lines(each.Err), Status: uint32(each.Status)}
	return nil
}

func lines(text []string) string {
	if len(text) == 0 {
		return ""
	}
	return strings.Join(text, "\n") + "\n"
}

// openShells answers for the hosts whose commands were recorded, each at a loopback address of its own.
func (r *Replay) openShells() error {
	if len(r.printed) == 0 {
		return nil
	}
	keys := &Lab{options: r.options, hostPort: r.hostPort}
	if err := keys.makeShellKeys(); err != nil {
		return err
	}
	var told []HostShell
	for number, name := range slices.Sorted(maps.Keys(r.printed)) { // hosts in the order of their pseudonyms
		shell := HostShell{Name: name, Address: loopback(number), Port: keys.shells.port, Fingerprint: ssh.FingerprintSHA256(keys.hostKey(name).PublicKey())}
		access := esxi.Access{
			HostKey: keys.hostKey(name), Password: keys.shells.password, Authorized: keys.shells.authorized,
			Admits: func(string) bool { return true }, Answers: r.answerCommand(name),
		}
		service := esxi.NewServer(nil, access, func() bool { return false })
		if err := service.Start(net.JoinHostPort(shell.Address, fmt.Sprint(shell.Port))); err != nil {
			return err
		}
		r.shells, told = append(r.shells, service), append(told, shell)
	}
	return keys.tellShells(told)
}

// answerCommand gives what the host printed when it was asked the same, to the letter.
func (r *Replay) answerCommand(host string) func(string) esxi.Answer {
	return func(command string) esxi.Answer {
		if answer, ok := r.printed[host][command]; ok {
			return answer
		}
		return esxi.Answer{Err: "the site record has no answer to this command\n", Status: 127}
	}
}
