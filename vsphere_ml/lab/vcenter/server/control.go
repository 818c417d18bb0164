package server

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// control serves the lab's own endpoints, which no vCenter has, to whoever gives the password by HTTP Basic:
//
//	GET    /lab/status            name, versions, address, numbers of hosts and VMs, delays, rules
//	GET    /lab/calls             how often each SOAP method was called
//	GET    /lab/faults            the rules in force, with their hits
//	POST   /lab/faults            adds a FaultRule, or a list of them
//	DELETE /lab/faults            removes all rules
//	POST   /lab/delays            {"CloneVM_Task": 2000}: how long tasks take, in milliseconds; those that run, too
//	POST   /lab/sessions/expire   ends every session; the next call of each is NotAuthenticated
//	POST   /lab/restart           {"down_ms": 500}: drops all connections and sessions, keeps the inventory
//	GET    /lab/hosts             where each host's shell is reached, how the host fails, how long its reboot takes
//	POST   /lab/hosts/NAME        {"connection": "notResponding", "reboot_ms": 1500, "faults": ["no-return"]}
//	POST   /lab/vms/NAME          {"guest_ip": "192.0.2.7"}: the guest reports an address, or "" for none;
//	                              {"shutdown_ms": 2000}: how long it takes to shut down, -1 for ever
//	                              {"ready_ms": 3000, "costop_ms": 0}: what its CPUs wait for in each 20 s
//
// Replies are JSON. A refused request answers {"error": "..."} with 400 or 404.
func (l *Lab) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /lab/status", func(w http.ResponseWriter, _ *http.Request) { reply(w, l.Status()) })
	mux.HandleFunc("GET /lab/calls", func(w http.ResponseWriter, _ *http.Request) { reply(w, l.calls.list()) })
	mux.HandleFunc("GET /lab/faults", func(w http.ResponseWriter, _ *http.Request) { reply(w, l.faults.list()) })
	mux.HandleFunc("POST /lab/faults", l.postFaults)
	mux.HandleFunc("DELETE /lab/faults", l.deleteFaults)
	mux.HandleFunc("POST /lab/delays", l.postDelays)
	mux.HandleFunc("POST /lab/sessions/expire", l.postExpire)
	mux.HandleFunc("POST /lab/restart", l.postRestart)
	mux.HandleFunc("GET /lab/hosts", func(w http.ResponseWriter, _ *http.Request) { reply(w, l.hostStatuses()) })
	mux.HandleFunc("POST /lab/hosts/{name}", l.postHost)
	mux.HandleFunc("POST /lab/vms/{name}", l.postVM)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !l.passwordGiven(r) {
			refuse(w)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		mux.ServeHTTP(w, r)
	})
}

// Status is what the lab says of itself.
type Status struct {
	Name       string         `json:"name"`
	Version    string         `json:"version"`
	APIVersion string         `json:"api_version"`
	Address    string         `json:"address"`
	Uptime     float64        `json:"uptime_seconds"`
	Hosts      int            `json:"hosts"`
	VMs        int            `json:"vms"`
	Delays     map[string]int `json:"delays"`
	Faults     []FaultRule    `json:"faults"`
}

// Status counts what stands now.
func (l *Lab) Status() Status {
	return Status{
		Name: l.File.Name, Version: l.File.VCenter.Version, APIVersion: apiVersion(l.File), Address: l.hostPort,
		Uptime: time.Since(l.Started).Seconds(),
		Hosts:  len(l.Context.Map.AllReference("HostSystem")),
		VMs:    len(l.Context.Map.AllReference("VirtualMachine")),
		Delays: l.delays.list(), Faults: l.faults.list(),
	}
}

func (l *Lab) postFaults(w http.ResponseWriter, r *http.Request) {
	var raw json.RawMessage
	if !read(w, r, &raw) {
		return
	}
	rules := make([]FaultRule, 1)
	var err error
	if len(raw) > 0 && raw[0] == '[' {
		err = json.Unmarshal(raw, &rules)
	} else {
		err = json.Unmarshal(raw, &rules[0])
	}
	if err != nil {
		complain(w, http.StatusBadRequest, err)
		return
	}
	for i := range rules {
		rules[i].Hits = 0
		if err := rules[i].check(); err != nil {
			complain(w, http.StatusBadRequest, err)
			return
		}
	}
	l.faults.add(rules...)
	reply(w, l.faults.list())
}

func (l *Lab) deleteFaults(w http.ResponseWriter, _ *http.Request) {
	l.faults.clear()
	reply(w, l.faults.list())
}

func (l *Lab) postDelays(w http.ResponseWriter, r *http.Request) {
	var wanted map[string]int
	if !read(w, r, &wanted) {
		return
	}
	if err := l.delays.set(wanted); err != nil {
		complain(w, http.StatusBadRequest, err)
		return
	}
	reply(w, l.delays.list())
}

func (l *Lab) postExpire(w http.ResponseWriter, _ *http.Request) {
	reply(w, map[string]int{"expired": l.expireSessions()})
}

func (l *Lab) postRestart(w http.ResponseWriter, r *http.Request) {
	wanted := struct {
		DownMS int `json:"down_ms"`
	}{500}
	if !read(w, r, &wanted) {
		return
	}
	reply(w, map[string]int{"down_ms": wanted.DownMS})
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
	go l.restart(time.Duration(max(wanted.DownMS, 0)) * time.Millisecond)
}

// restart drops everybody and stays away for a while; a vCenter keeps its inventory, and loses its sessions.
func (l *Lab) restart(down time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	time.Sleep(20 * time.Millisecond) // lets the reply to /lab/restart leave
	l.expireSessions()
	_ = l.http.Close()
	time.Sleep(down)
	_, port, _ := net.SplitHostPort(l.hostPort)
	listener, err := net.Listen("tcp", net.JoinHostPort(l.bound, port))
	// Meanwhile somebody's connection to elsewhere may have been given the port.
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		listener, err = net.Listen("tcp", net.JoinHostPort(l.bound, port))
	}
	if err != nil {
		panic(fmt.Sprintf("cannot listen on port %s again: %v", port, err))
	}
	l.serve(listener)
}

func (l *Lab) postVM(w http.ResponseWriter, r *http.Request) {
	machines := l.vmsNamed(r.PathValue("name"))
	if len(machines) == 0 {
		complain(w, http.StatusNotFound, fmt.Errorf("no VM %s in this lab", r.PathValue("name")))
		return
	}
	var change struct {
		GuestIP    *string `json:"guest_ip"`
		ShutdownMS *int    `json:"shutdown_ms"`
		ReadyMS    *int64  `json:"ready_ms"`
		CoStopMS   *int64  `json:"costop_ms"`
	}
	if !read(w, r, &change) {
		return
	}
	for _, machine := range machines {
		if change.GuestIP != nil {
			l.reportAddress(machine, *change.GuestIP)
		}
		if change.ShutdownMS != nil {
			l.shutdowns.set(machine.Name, *change.ShutdownMS)
		}
		if change.ReadyMS != nil {
			l.waits.set(machine.Name, func(w *waiting) { w.Ready = *change.ReadyMS })
		}
		if change.CoStopMS != nil {
			l.waits.set(machine.Name, func(w *waiting) { w.CoStop = *change.CoStopMS })
		}
	}
	reply(w, map[string]int{"changed": len(machines)})
}

// vmsNamed are the VMs whose name matches the glob.
func (l *Lab) vmsNamed(pattern string) []*simulator.VirtualMachine {
	var found []*simulator.VirtualMachine
	ctx := *l.Context
	for _, object := range l.Context.Map.AllReference("VirtualMachine") {
		machine, ok := object.(*simulator.VirtualMachine)
		if !ok {
			continue
		}
		ctx.WithLock(machine, func() {
			if ok, _ := path.Match(pattern, machine.Name); ok {
				found = append(found, machine)
			}
		})
	}
	return found
}

// reportAddress shows the guest as VMware Tools would: running, with that address on its first adapter.
func (l *Lab) reportAddress(machine *simulator.VirtualMachine, address string) {
	running, status := types.VirtualMachineToolsRunningStatusGuestToolsRunning, types.VirtualMachineToolsStatusToolsOk
	if address == "" {
		running, status = types.VirtualMachineToolsRunningStatusGuestToolsNotRunning, types.VirtualMachineToolsStatusToolsNotRunning
	}
	ctx := *l.Context
	ctx.Map.AtomicUpdate(&ctx, machine, []types.PropertyChange{
		{Name: "guest.ipAddress", Val: address},
		{Name: "guest.toolsRunningStatus", Val: string(running)},
		{Name: "guest.toolsStatus", Val: status},
		{Name: "guest.net", Val: guestNetworks(machine, address)},
		{Name: "summary.guest.ipAddress", Val: address},
		{Name: "summary.guest.toolsRunningStatus", Val: string(running)},
		{Name: "summary.guest.toolsStatus", Val: status},
	})
}

func guestNetworks(machine *simulator.VirtualMachine, address string) []types.GuestNicInfo {
	for _, device := range machine.Config.Hardware.Device {
		card, ok := device.(types.BaseVirtualEthernetCard)
		if !ok || address == "" {
			continue
		}
		return []types.GuestNicInfo{{
			IpAddress: []string{address}, MacAddress: card.GetVirtualEthernetCard().MacAddress,
			Connected: true, DeviceConfigId: card.GetVirtualEthernetCard().Key,
		}}
	}
	return nil
}

// read decodes the body, if there is one, and refuses what it does not know.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	if r.ContentLength == 0 {
		return true
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		complain(w, http.StatusBadRequest, err)
		return false
	}
	return true
}

func reply(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func complain(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}
