package esxi

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/interp"

	"vsml.dev/lab/vcenter/rack"
)

// mlxconfig's layout, order and sentences are those of the open source of mstconfig (mstflint), which is the same
// program, and of printed queries. What a locked firmware answers is written by hand.
//
// It knows -d DEVICE, -e, -y and the commands q[uery] [NAME…] and s[et] NAME=VALUE….
func mlxconfig(p *process) error {
	p.standIn()
	wish, err := readMlxconfig(p.args[1:])
	if err != nil {
		return p.complain(3, err.Error())
	}
	view := p.host.View()
	number := 0
	for _, device := range mstDevices(view) {
		if wish.device != "" && strings.TrimPrefix(strings.TrimPrefix(wish.device, "/dev/"), "mst/") != device.name {
			continue
		}
		number++
		if err := p.configure(wish, device, number, view); err != nil {
			return err
		}
	}
	if number == 0 {
		return p.complain(3, "Failed to open the device")
	}
	return nil
}

// complain writes an error where mlxconfig does: on standard output.
func (p *process) complain(code uint8, sentence string) error {
	p.printf("-E- %s", sentence)
	return interp.ExitStatus(code)
}

// mlxconfigWish is a command line of mlxconfig.
type mlxconfigWish struct {
	device  string
	all     bool // -e: default and current values too
	yes     bool
	set     bool
	names   []string
	values  []string // beside names, when set
	command bool
}

func readMlxconfig(words []string) (wish mlxconfigWish, err error) {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch {
		case (word == "-d" || word == "--dev") && len(words) > 0:
			wish.device, words = words[0], words[1:]
		case word == "-e" || word == "--enable_verbosity":
			wish.all = true
		case word == "-y" || word == "--yes":
			wish.yes = true
		case strings.HasPrefix(word, "-"):
			return wish, fmt.Errorf("invalid argument: %s", word)
		case !wish.command:
			wish.command = true
			wish.set = word == "s" || word == "set"
			if !wish.set && word != "q" && word != "query" {
				return wish, fmt.Errorf("invalid command: %s", word)
			}
		default:
			name, value, _ := strings.Cut(word, "=")
			wish.names, wish.values = append(wish.names, name), append(wish.values, value)
		}
	}
	switch {
	case !wish.command:
		return wish, errors.New("No command was specified")
	case wish.set && wish.device == "":
		return wish, errors.New("A device must be specified to set configurations")
	case wish.set && len(wish.names) == 0:
		return wish, errors.New("Failed to parse TLV configurations")
	}
	return wish, nil
}

func (p *process) configure(wish mlxconfigWish, device mstDevice, number int, view rack.View) error {
	listed := view.Firmware(device.nic.Address)
	p.printf("\nDevice #%d:\n----------\n", number)
	p.printf("%-16s%s", "Device type:", device.kind())
	p.printf("%-16s%s", "Name:", device.nic.Board.Name)
	p.printf("%-16s%s", "Description:", "vsml lab; there is no such adapter")
	p.printf("%-16s%s\n", "Device:", device.name)
	shown, missing := chosen(listed, wish.names)
	p.printf("%s", wish.header())
	if missing != "" {
		return p.complain(3, fmt.Sprintf("The Device doesn't support %s parameter", missing))
	}
	for i, setting := range shown {
		p.print(wish.line(setting, i))
	}
	if wish.all && differs(shown) {
		p.printf("The '*' shows parameters with next value different from default/current value.")
	}
	if !wish.set {
		return nil
	}
	return p.apply(wish, device)
}

// chosen are the settings of these names, or all; and the first name that is none.
func chosen(listed []rack.Setting, names []string) (shown []rack.Setting, missing string) {
	if len(names) == 0 {
		return listed, ""
	}
	for _, name := range names {
		found := false
		for _, setting := range listed {
			if setting.Name == name {
				shown, found = append(shown, setting), true
			}
		}
		if !found {
			return nil, name
		}
	}
	return shown, ""
}

func (w mlxconfigWish) header() string {
	line := fmt.Sprintf("%-16s%38s", "Configurations:", "Next Boot")
	if w.all {
		line = fmt.Sprintf("%-16s%36s%16s%18s", "Configurations:", "Default", "Current", "Next Boot")
	}
	if w.set {
		line += "       New"
	}
	return line
}

func (w mlxconfigWish) line(setting rack.Setting, index int) string {
	mark := " "
	if w.all && (setting.Next != setting.Default || setting.Next != setting.Current) {
		mark = "*"
	}
	line := fmt.Sprintf("%s        %-36s", mark, setting.Name)
	if w.all {
		line += fmt.Sprintf("%-16s%-16s", setting.Default, setting.Current)
	}
	line += fmt.Sprintf("%-16s", setting.Next)
	if w.set {
		line += fmt.Sprintf("%-16s", w.values[index])
	}
	return line + "\n"
}

func differs(shown []rack.Setting) bool {
	for _, setting := range shown {
		if setting.Next != setting.Default || setting.Next != setting.Current {
			return true
		}
	}
	return false
}

func (p *process) apply(wish mlxconfigWish, device mstDevice) error {
	p.print("\n Apply new Configuration? (y/n) [n] : ")
	if wish.yes {
		p.print("y\n")
	} else if answer, _ := bufio.NewReader(p.stdin).ReadString('\n'); !strings.EqualFold(strings.TrimSpace(answer), "y") {
		return p.complain(1, "operation aborted by user")
	}
	p.print("Applying... ")
	for i, name := range wish.names {
		if err := p.host.SetFirmware(device.nic.Address, name, wish.values[i]); err != nil {
			p.printf("Failed!")
			return p.complain(3, refusal(err))
		}
	}
	p.printf("Done!\n-I- Please reboot machine to load new configurations.")
	return nil
}

func refusal(err error) string {
	if errors.Is(err, rack.ErrLocked) {
		return "Failed to set configuration: the firmware refused the change"
	}
	return "Failed to set configuration: " + err.Error()
}
