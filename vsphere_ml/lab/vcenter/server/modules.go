package server

import (
	"maps"
	"slices"
	"strings"

	command "github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// moduleSystem is a host's HostKernelModuleSystem: the options that drivers are loaded with at the next boot. It never
// tells what a driver runs with. Source: the vSphere API's KernelModuleInfo.optionString.
type moduleSystem struct {
	mo.HostKernelModuleSystem
	lab *Lab
	esx *esx
}

// QueryModules lists the modules that the lab knows.
func (m *moduleSystem) QueryModules(*simulator.Context, *types.QueryModules) soap.HasFault {
	modules := m.lab.view(m.esx).Modules
	var found []types.KernelModuleInfo
	for i, name := range slices.Sorted(maps.Keys(modules)) {
		found = append(found, types.KernelModuleInfo{
			Id: int32(i + 1), Name: name, Filename: name, OptionString: modules[name].Configured, Loaded: true, Enabled: true,
		})
	}
	return &methods.QueryModulesBody{Res: &types.QueryModulesResponse{Returnval: found}}
}

// QueryConfiguredModuleOptionString is the whole string of one module.
func (m *moduleSystem) QueryConfiguredModuleOptionString(_ *simulator.Context, req *types.QueryConfiguredModuleOptionString) soap.HasFault {
	module, ok := m.lab.view(m.esx).Modules[req.Name]
	if !ok {
		return &methods.QueryConfiguredModuleOptionStringBody{Fault_: simulator.Fault("", &types.NotFound{})}
	}
	return &methods.QueryConfiguredModuleOptionStringBody{
		Res: &types.QueryConfiguredModuleOptionStringResponse{Returnval: module.Configured},
	}
}

// UpdateModuleOptionString replaces the whole string of one module.
func (m *moduleSystem) UpdateModuleOptionString(ctx *simulator.Context, req *types.UpdateModuleOptionString) soap.HasFault {
	body := &methods.UpdateModuleOptionStringBody{}
	if _, ok := m.lab.view(m.esx).Modules[req.Name]; !ok {
		body.Fault_ = simulator.Fault("", &types.NotFound{})
		return body
	}
	if err := m.lab.Rack.SetModule(m.esx.name, req.Name, req.Options); err != nil {
		body.Fault_ = simulator.Fault(err.Error(), &types.InvalidArgument{InvalidProperty: "options"})
		return body
	}
	m.lab.refresh(ctx, m.esx.name)
	body.Res = &types.UpdateModuleOptionStringResponse{}
	return body
}

// moduleParameters are those of the drivers that RoCE and SR-IOV are set by, with their types and descriptions as
// esxcli lists them (known, not verified by this lab).
var moduleParameters = map[string][][3]string{
	"nmlx5_core": {
		{"ecn", "int", "Enable the ECN feature"},
		{"max_vfs", "array of uint", "Number of PCI VFs to initialize"},
		{"pfcrx", "int", "Priority based Flow Control policy on RX"},
		{"pfctx", "int", "Priority based Flow Control policy on TX"},
		{"trust_state", "int", "Port policy to calculate the switch priority and packet color based on incoming packet"},
	},
	"nmlx5_rdma": {
		{"dscp_force", "int", "DSCP value to force on outgoing RoCE traffic"},
		{"pcp_force", "int", "PCP value to force on outgoing RoCE traffic"},
	},
}

func moduleList(l *Lab, _ *simulator.Context, machine *esx, arguments command.Values) ([]command.Values, *esxcliError) {
	name := arguments.Value("module")
	module, ok := l.view(machine).Modules[name]
	if !ok {
		return nil, &esxcliError{"Unable to find module " + name}
	}
	set := map[string]string{}
	for _, word := range strings.Fields(module.Configured) {
		parameter, value, _ := strings.Cut(word, "=")
		set[parameter] = value
	}
	var rows []command.Values
	for _, known := range moduleParameters[name] {
		rows = append(rows, values("Name", known[0], "Type", known[1], "Value", set[known[0]], "Description", known[2]))
	}
	return rows, nil
}

func moduleSet(l *Lab, ctx *simulator.Context, machine *esx, arguments command.Values) ([]command.Values, *esxcliError) {
	name := arguments.Value("module")
	if _, ok := l.view(machine).Modules[name]; !ok {
		return nil, &esxcliError{"Unable to find module " + name}
	}
	if err := l.Rack.SetModule(machine.name, name, arguments.Value("parameter-string")); err != nil {
		return nil, &esxcliError{err.Error()}
	}
	l.refresh(ctx, machine.name)
	return nil, nil
}
