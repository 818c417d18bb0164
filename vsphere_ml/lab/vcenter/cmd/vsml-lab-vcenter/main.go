// Command vsml-lab-vcenter serves a lab vCenter described by a topology file.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"vsml.dev/lab/vcenter/server"
	"vsml.dev/lab/vcenter/topology"
)

const usage = `usage: vsml-lab-vcenter serve --topology FILE|--record FOLDER --state DIR [--listen 127.0.0.1:0]
                              [--username administrator@vsphere.local] [--password-file FILE]
                              [--power-hook PROGRAM]

The password comes from the file, or from the environment variable VSML_LAB_PASSWORD.
The power hook stands guests behind VMs; it is told of power-on, reset, power-off and destroy as JSON on its stdin.`

// Exit statuses: 1 for what the machine refused, 2 for what the caller wrote wrongly.
const (
	exitFailed = 1
	exitUsage  = 2
)

// mistake is an error of the caller.
type mistake struct{ error }

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "vsml-lab-vcenter: %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
		var wrong mistake
		if errors.As(err, &wrong) {
			os.Exit(exitUsage)
		}
		os.Exit(exitFailed)
	}
}

func run(arguments []string) error {
	if len(arguments) == 1 && (arguments[0] == "--help" || arguments[0] == "-h") {
		fmt.Println(usage)
		return nil
	}
	if len(arguments) == 0 || arguments[0] != "serve" {
		return mistake{errors.New("the command is serve; see --help")}
	}
	options, from, err := parse(arguments[1:])
	if errors.Is(err, flag.ErrHelp) {
		fmt.Println(usage)
		return nil
	}
	if err != nil {
		return mistake{err}
	}
	return serve(options, from)
}

// source is what is served: a topology, or the folder of a site record.
type source struct{ topology, record string }

func (s source) name() string { return s.topology + s.record }

func parse(arguments []string) (options server.Options, from source, err error) {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&from.topology, "topology", "", "")
	flags.StringVar(&from.record, "record", "", "")
	flags.StringVar(&options.StateDir, "state", "", "")
	flags.StringVar(&options.Listen, "listen", "127.0.0.1:0", "")
	flags.StringVar(&options.Username, "username", "administrator@vsphere.local", "")
	flags.StringVar(&options.PowerHook, "power-hook", "", "")
	passwordFile := flags.String("password-file", "", "")
	if err := flags.Parse(arguments); err != nil {
		return options, from, err
	}
	if (from.topology == "") == (from.record == "") || options.StateDir == "" || flags.NArg() > 0 {
		return options, from, errors.New("--topology FILE and --state DIR are needed; see --help")
	}
	if options.Password, err = password(*passwordFile); err != nil {
		return options, from, err
	}
	if from.topology != "" {
		options.File, err = topology.Load(from.topology)
	}
	return options, from, err
}

func password(file string) (string, error) {
	if file == "" {
		if word := os.Getenv("VSML_LAB_PASSWORD"); word != "" {
			return word, nil
		}
		return "", errors.New("no password: give --password-file FILE or set VSML_LAB_PASSWORD")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	word := strings.TrimRight(string(text), "\r\n")
	if word == "" {
		return "", fmt.Errorf("the password file %s is empty", file)
	}
	return word, nil
}

func serve(options server.Options, from source) error {
	if err := os.MkdirAll(options.StateDir, 0o700); err != nil {
		return err
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	journal, err := os.OpenFile(filepath.Join(options.StateDir, "simulator.log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer journal.Close()
	log.SetOutput(journal) // the simulator's remarks, which hold no SOAP bodies
	lab, err := start(options, from)
	if err != nil {
		return err
	}
	announcement := filepath.Join(options.StateDir, "server.json")
	if err := announce(announcement, lab, options, from.name()); err != nil {
		return errors.Join(err, lab.Close())
	}
	<-end
	return errors.Join(os.Remove(announcement), lab.Close())
}

// running is a vCenter that answers.
type running interface {
	Address() string
	URL() string
	CAFile() string
	APIVersion() string
	Close() error
}

func start(options server.Options, from source) (running, error) {
	if from.record == "" {
		return server.Start(options)
	}
	replay, err := server.StartReplay(options, from.record)
	var wrong server.RecordMistake
	if errors.As(err, &wrong) {
		return nil, mistake{fmt.Errorf("the site record %s: %w", from.record, err)}
	}
	if err != nil {
		return nil, err
	}
	return replay, nil
}

// announce tells where the server answers, in a file that is never seen half written.
func announce(path string, lab running, options server.Options, source string) error {
	text, err := json.MarshalIndent(map[string]any{
		"schema": 1, "url": lab.URL(), "address": lab.Address(), "username": options.Username, "ca_file": lab.CAFile(),
		"pid": os.Getpid(), "topology": source, "api_version": lab.APIVersion(), "control": "https://" + lab.Address() + "/lab",
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
