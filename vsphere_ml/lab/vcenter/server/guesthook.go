package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// powerHook runs a program when a VM that has a guest (see hasGuest) changes its power state, so that a guest can
// stand behind it:
//
//	stdin   one JSON object: {"event", "vm", "moid", "uuid", "host", "extraConfig", "nics": [{"mac", "network"}]}
//	stdout  JSON lines, each shown by VMware Tools: {"guest_ip", "hostname", "guestinfo": {key: value}}; at power-off
//	        only what the guest has done to its adapters' firmware counts, see ats.go
//	stderr  goes to the lab's log
//	fd 3    a pipe that ends with the lab; what outlives the program watches it
//
// The events are power-on, reset, power-off and destroy. Those of one VM run one after the other, in their order.
// Power operations neither wait for the program nor learn how it fares.
type powerHook struct {
	program  string
	lifeline *os.File // read by the programs
	hold     *os.File // the lab's end, held open while it lives
	stop     context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu    sync.Mutex
	last  map[string]chan struct{} // by VM: closed when its latest event is done with
	begun map[string]powerEvent    // the VMs that have a guest, as they were when it began
}

// A program that takes longer is ended; a guest boots in far less.
const hookDeadline = 5 * time.Minute

// How long programs may go on after the lab has begun to close.
const hookGrace = 2 * time.Second

func newPowerHook(program string) (*powerHook, error) {
	if program == "" {
		return nil, nil
	}
	if _, err := exec.LookPath(program); err != nil {
		return nil, fmt.Errorf("power hook: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stop, cancel := context.WithCancel(context.Background())
	return &powerHook{program: program, lifeline: read, hold: write, stop: stop, cancel: cancel,
		last: map[string]chan struct{}{}, begun: map[string]powerEvent{}}, nil
}

// close ends the programs, and lets go of whatever watches the lifeline.
func (h *powerHook) close() {
	if h == nil {
		return
	}
	h.cancel()
	h.running.Wait()
	_, _ = h.hold.Close(), h.lifeline.Close()
}

// guestReport is what a guest tells vCenter through VMware Tools; absent keys stay as they are.
type guestReport struct {
	GuestIP   *string           `json:"guest_ip"`
	Hostname  *string           `json:"hostname"`
	Guestinfo map[string]string `json:"guestinfo"`
}

// guestBegins tells the hook of a VM that has been powered on, or reset.
func (l *Lab) guestBegins(ctx *simulator.Context, machine *simulator.VirtualMachine, event string) {
	own := &simulator.Context{Map: ctx.Map}
	told, ended := l.describe(own, machine, event), func(error) {}
	if spec, waits := l.customizations.take(machine.Self); waits {
		told.customizing(spec)
		l.customizationBegins(machine)
		ended = func(err error) { l.customizationEnds(machine, err) }
	}
	if l.hook == nil || !told.hasGuest() && !l.hook.hadGuest(told.MoID) {
		if told.Customization != nil {
			l.show(machine, told.asCustomized())
			ended(nil)
		}
		return
	}
	l.hook.mu.Lock()
	l.hook.begun[told.MoID] = told
	l.hook.mu.Unlock()
	l.hook.queue(told, errand{before: func() {}, show: func(report guestReport) { l.show(machine, report) }, after: ended})
}

// hadGuest: what was customized once boots again without being told anew.
func (h *powerHook) hadGuest(machine string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, had := h.begun[machine]
	return had
}

// asCustomized is what a guest that cannot fail would report.
func (e *powerEvent) asCustomized() guestReport {
	report := guestReport{Hostname: &e.Customization.Hostname}
	for _, nic := range e.NICs {
		if address, _, static := strings.Cut(nic.Address, "/"); static {
			report.GuestIP = &address
			break
		}
	}
	return report
}

// guestEnds tells the hook of a VM that runs no longer, or exists no longer. The caller may hold the VM's lock.
func (l *Lab) guestEnds(ctx *simulator.Context, machine *simulator.VirtualMachine) {
	if l.hook == nil {
		return
	}
	event := "power-off"
	l.hook.mu.Lock()
	told, known := l.hook.begun[machine.Self.Value]
	if ctx.Map.Get(machine.Self) == nil {
		event = "destroy"
		delete(l.hook.begun, machine.Self.Value)
	}
	l.hook.mu.Unlock()
	if known {
		told.Event = event
		told.Customization = nil
		l.hook.queue(told, errand{
			before: func() { l.showNothing(machine) },
			show:   func(report guestReport) { l.takeFirmware(told, report.Guestinfo) },
			after:  func(error) {},
		})
	}
}

// settle waits until the guests that began on a host have ended as far as they were told to.
func (h *powerHook) settle(host string) {
	if h == nil {
		return
	}
	var last []chan struct{}
	h.mu.Lock()
	for moid, told := range h.begun {
		if told.Host == host && h.last[moid] != nil {
			last = append(last, h.last[moid])
		}
	}
	h.mu.Unlock()
	for _, done := range last {
		<-done
	}
}

// errand is what is done around a run of the program: before it, with each report, and when it has ended.
type errand struct {
	before func()
	show   func(guestReport)
	after  func(error)
}

// queue runs the program for the event in the background, after all earlier ones of the VM.
func (h *powerHook) queue(event powerEvent, around errand) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stop.Err() != nil {
		return
	}
	before, done := h.last[event.MoID], make(chan struct{})
	h.last[event.MoID] = done
	h.running.Add(1)
	go func() {
		defer h.running.Done()
		defer close(done)
		defer func() {
			if reason := recover(); reason != nil {
				log.Printf("power hook: %s of %s panicked: %v", event.Event, event.VM, reason)
			}
		}()
		if before != nil {
			<-before
		}
		around.before()
		err := h.run(event, around.show)
		if err != nil && h.stop.Err() == nil {
			log.Printf("power hook: %s of %s: %v", event.Event, event.VM, err)
		}
		around.after(err)
	}()
}

func (h *powerHook) run(event powerEvent, show func(guestReport)) error {
	stop, cancel := context.WithTimeout(h.stop, hookDeadline)
	defer cancel()
	text, err := json.Marshal(event)
	if err != nil {
		return err
	}
	command := exec.CommandContext(stop, h.program)
	command.Stdin, command.Stderr = bytes.NewReader(text), hookLog{event.VM}
	command.ExtraFiles = []*os.File{h.lifeline}
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = hookGrace
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var report guestReport
		if err := json.Unmarshal(lines.Bytes(), &report); err != nil {
			log.Printf("power hook: %s of %s wrote what is no report: %v", event.Event, event.VM, err)
			continue
		}
		show(report)
	}
	return command.Wait()
}

// hookLog writes a program's remarks to the lab's log.
type hookLog struct{ vm string }

func (h hookLog) Write(text []byte) (int, error) {
	log.Printf("guest of %s: %s", h.vm, strings.TrimSpace(string(text)))
	return len(text), nil
}

// showNothing lets vCenter forget what the guest of a VM reported that runs no longer.
func (l *Lab) showNothing(machine *simulator.VirtualMachine) {
	ctx := &simulator.Context{Map: l.Context.Map}
	off := false
	ctx.WithLock(machine, func() {
		off = ctx.Map.Get(machine.Self) != nil && machine.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOn
	})
	if off {
		l.reportAddress(machine, "")
	}
}

// show lets vCenter show what the guest reported, while its VM runs.
func (l *Lab) show(machine *simulator.VirtualMachine, report guestReport) {
	ctx := &simulator.Context{Map: l.Context.Map}
	running := false
	ctx.WithLock(machine, func() {
		running = ctx.Map.Get(machine.Self) != nil && machine.Config != nil &&
			machine.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn
		if !running {
			return
		}
		changes := make([]types.BaseOptionValue, 0, len(report.Guestinfo))
		for key, value := range report.Guestinfo {
			changes = append(changes, &types.OptionValue{Key: key, Value: value})
		}
		merged := mergeExtraConfig(machine.Config.ExtraConfig, changes)
		shown := []types.PropertyChange{{Name: "config.extraConfig", Val: merged}}
		if report.Hostname != nil {
			shown = append(shown, types.PropertyChange{Name: "guest.hostName", Val: *report.Hostname},
				types.PropertyChange{Name: "summary.guest.hostName", Val: *report.Hostname})
		}
		ctx.Map.Update(ctx, machine, shown)
	})
	if running && report.GuestIP != nil {
		l.reportAddress(machine, *report.GuestIP)
	}
}
