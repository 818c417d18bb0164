package esxi

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/interp"

	"vsml.dev/lab/vcenter/rack"
)

// What nvidia-smi prints is written by hand, after outputs that people printed of `-mig 1` on ESXi (A100, "pending enable
// state … Not Supported") and elsewhere (Hopper, "Enabled MIG Mode"), and of --query-gpu.
//
// It knows -i GPU -mig 0|1, and --query-gpu=FIELD,… --format=csv[,noheader] of pci.bus_id, name, mig.mode.current and
// mig.mode.pending; a GPU is named by its index or its PCI address. It is where the vGPU manager is.
func nvidiaSMI(p *process) error {
	p.standIn()
	flags := p.flags()
	gpus, err := p.chosen(flags["-i"])
	switch {
	case err != nil:
		return p.complainSMI(6, err.Error())
	case flags["-mig"] != "":
		return p.switchMIG(gpus, flags["-mig"])
	case flags["--query-gpu"] != "":
		return p.query(gpus, flags["--query-gpu"], flags["--format"])
	}
	return p.complainSMI(1, "this stand-in knows -mig and --query-gpu only")
}

// complainSMI writes an error where nvidia-smi does: on standard output.
func (p *process) complainSMI(code uint8, sentence string) error {
	p.printf("%s", sentence)
	return interp.ExitStatus(code)
}

// flags are the program's options: `-i 0`, `--format=csv`.
func (p *process) flags() map[string]string {
	found, words := map[string]string{}, p.args[1:]
	for len(words) > 0 {
		name, value, joined := strings.Cut(words[0], "=")
		words = words[1:]
		if !joined && len(words) > 0 {
			value, words = words[0], words[1:]
		}
		found[name] = value
	}
	return found
}

// chosen are the GPUs that the vGPU manager has: none that are handed through whole. With a name, that one of them.
func (p *process) chosen(name string) (gpus []rack.GPU, err error) {
	for _, gpu := range p.host.View().GPUs {
		if gpu.Passthrough.Active {
			continue
		}
		gpus = append(gpus, gpu)
	}
	if name == "" {
		return gpus, nil
	}
	for index, gpu := range gpus {
		if strconv.Itoa(index) == name || strings.HasSuffix(strings.ToLower(busID(gpu)), strings.ToLower(name)) {
			return []rack.GPU{gpu}, nil
		}
	}
	return nil, errors.New("No devices were found")
}

// busID is a PCI address as nvidia-smi writes it: eight digits of domain, in capitals.
func busID(gpu rack.GPU) string { return "0000" + strings.ToUpper(gpu.Address) }

func (p *process) switchMIG(gpus []rack.GPU, value string) error {
	if value != "0" && value != "1" {
		return p.complainSMI(2, "Option \"-mig\" is not recognized with that value.")
	}
	done, word := "Disabled", "disable"
	if value == "1" {
		done, word = "Enabled", "enable"
	}
	for _, gpu := range gpus {
		pending, err := p.host.SetMIG(gpu.Address, value == "1")
		switch {
		case errors.Is(err, rack.ErrInUse):
			return p.complainSMI(19, fmt.Sprintf("Unable to %s MIG Mode for GPU %s: In use by another client", word, busID(gpu)))
		case err != nil:
			return p.complainSMI(3, fmt.Sprintf("Unable to %s MIG Mode for GPU %s: Not Supported", word, busID(gpu)))
		case pending:
			p.printf("Warning: MIG mode is in pending %s state for GPU %s:Not Supported", word, busID(gpu))
			p.printf("Reboot the system or try nvidia-smi --gpu-reset to make MIG mode effective on GPU %s", busID(gpu))
		default:
			p.printf("%s MIG Mode for GPU %s", done, busID(gpu))
		}
	}
	p.printf("All done.")
	return nil
}

func (p *process) query(gpus []rack.GPU, fields, format string) error {
	names := strings.Split(fields, ",")
	if !strings.Contains(format, "noheader") {
		p.printf("%s", strings.Join(names, ", "))
	}
	for _, gpu := range gpus {
		var cells []string
		for _, name := range names {
			cell, known := queried(gpu, name)
			if !known {
				return p.complainSMI(2, fmt.Sprintf("Field \"%s\" is not a valid field to query.", name))
			}
			cells = append(cells, cell)
		}
		p.printf("%s", strings.Join(cells, ", "))
	}
	return nil
}

func queried(gpu rack.GPU, field string) (string, bool) {
	switch field {
	case "pci.bus_id":
		return busID(gpu), true
	case "name":
		return "NVIDIA " + gpu.Board.Name, true
	case "mig.mode.current":
		return mode(gpu, gpu.MIG), true
	case "mig.mode.pending":
		return mode(gpu, gpu.MIGNext), true
	}
	return "", false
}

func mode(gpu rack.GPU, on bool) string {
	switch {
	case !gpu.Board.MIG:
		return "[N/A]"
	case on:
		return "Enabled"
	}
	return "Disabled"
}

// xorg knows restart, after which configured graphics types count.
func xorg(p *process) error {
	if len(p.args) < 2 || p.args[1] != "restart" {
		return p.fail(1, "usage: /etc/init.d/xorg restart")
	}
	p.standIn()
	p.host.RestartXorg()
	return nil
}
