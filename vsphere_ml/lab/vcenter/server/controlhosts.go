package server

import (
	"fmt"
	"net/http"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// hostChange is what POST /lab/hosts/NAME takes; absent keys stay as they are. The faults replace those before.
type hostChange struct {
	Connection *types.HostSystemConnectionState `json:"connection"`
	RebootMS   *int                             `json:"reboot_ms"`
	NoticeMS   *int                             `json:"notice_ms"`
	Faults     *[]string                        `json:"faults"`
}

// hostStatus is what GET /lab/hosts tells of a host.
type hostStatus struct {
	HostShell
	rebootStyle

	ESXi        string                          `json:"esxi"`
	Connection  types.HostSystemConnectionState `json:"connection"`
	Maintenance bool                            `json:"maintenance"`
	SSH         bool                            `json:"ssh"` // whether the service runs
	Faults      []string                        `json:"faults"`
}

func (l *Lab) hostStatuses() []hostStatus {
	var told []hostStatus
	for _, name := range l.Rack.Hosts() {
		told = append(told, l.hostStatus(l.site.hosts[name]))
	}
	return told
}

func (l *Lab) hostStatus(machine *esx) hostStatus {
	ctx := &simulator.Context{Map: l.Context.Map}
	told := hostStatus{
		HostShell: l.Shell(machine.name), rebootStyle: l.site.reboots.of(machine.name), ESXi: machine.model.ESXiVersion,
		SSH: machine.ssh != nil && machine.ssh.Runs(), Faults: append([]string{}, l.view(machine).Faults...),
	}
	locked(ctx, machine.system, func() {
		told.Connection, told.Maintenance = machine.system.Runtime.ConnectionState, machine.system.Runtime.InMaintenanceMode
	})
	return told
}

func (l *Lab) postHost(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	machine, ok := l.site.hosts[name]
	if !ok {
		complain(w, http.StatusNotFound, fmt.Errorf("no host %s in this lab", name))
		return
	}
	var change hostChange
	if !read(w, r, &change) {
		return
	}
	if change.Faults != nil {
		if err := l.Rack.Fail(name, *change.Faults); err != nil {
			complain(w, http.StatusBadRequest, err)
			return
		}
	}
	if err := l.reconnect(machine, change.Connection); err != nil {
		complain(w, http.StatusBadRequest, err)
		return
	}
	l.site.reboots.change(name, change)
	reply(w, l.hostStatus(machine))
}

// reconnect shows the host in another state. One that is down because of a reboot boots when it is to be connected.
func (l *Lab) reconnect(machine *esx, state *types.HostSystemConnectionState) error {
	if state == nil {
		return nil
	}
	ctx, system := &simulator.Context{Map: l.Context.Map}, &host{machine.system, l}
	switch *state {
	case types.HostSystemConnectionStateConnected:
		system.comeBack(ctx)
		system.connection(ctx, *state)
	case types.HostSystemConnectionStateDisconnected, types.HostSystemConnectionStateNotResponding:
		system.connection(ctx, *state)
	default:
		return fmt.Errorf("connection is %q: it must be connected, disconnected or notResponding", *state)
	}
	return nil
}
