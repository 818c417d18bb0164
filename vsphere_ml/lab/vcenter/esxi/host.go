// Package esxi is the shell of a lab's ESXi hosts, reached by SSH: esxcli, NVIDIA's firmware tools, and what else a
// program types there. It knows no simulator; the server package hands it hosts.
//
// Nothing here ran on hardware. Where a format was copied from a printed output, the comment says from which.
package esxi

import (
	"vsml.dev/lab/vcenter/rack"
)

// Host is the ESXi that a shell runs on.
type Host interface {
	// View is the host's hardware and settings as they are now.
	View() rack.View
	// Product is the ESXi version and build.
	Product() (version, build string)
	// Commands are esxcli's.
	Commands() []Command
	// SetFirmware changes a setting of an adapter function; the errors are package rack's.
	SetFirmware(address, name, value string) error
	// SetMIG switches a GPU's MIG mode; pending tells that it counts from the next boot. The errors are package rack's.
	SetMIG(address string, on bool) (pending bool, err error)
	// RestartXorg puts configured graphics types in force.
	RestartXorg()
	// Reboot reboots the host; its error is for people.
	Reboot() error
}

// Command is one command of esxcli.
type Command struct {
	Namespace string // system settings kernel
	Name      string // list
	Help      string
	Options   []Option
	Titles    []string // of the fields, in their order; a field's name is its title without spaces
	Layout    Layout
	Run       func(arguments map[string]string) ([]Row, error)
}

// Option is one option of a command: -o|--option.
type Option struct {
	Short, Long, Help string
	Required          bool
}

// Row is one answer of a command, by the fields' names.
type Row map[string]string

// Layout is how esxcli writes a command's answers.
type Layout int

// The layouts.
const (
	Table   Layout = iota // one row a line, under titles
	Records               // each record under its first field
	Fields                // one record, indented
	Bare                  // one value, alone
	Silent                // nothing
)
