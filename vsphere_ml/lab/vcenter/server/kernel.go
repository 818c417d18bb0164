package server

import (
	"fmt"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// kernelPrefix begins the advanced options that stand for boot options of the VMkernel.
const kernelPrefix = "VMkernel.Boot."

// owner is the host whose advanced options these are; nil for vCenter's own settings.
func (o *options) owner() *esx {
	for _, machine := range o.lab.site.hosts {
		if reference := machine.system.ConfigManager.AdvancedOption; reference != nil && *reference == o.Self {
			return machine
		}
	}
	return nil
}

// QueryOptions reads a host's advanced options where its config shows them.
func (o *options) QueryOptions(ctx *simulator.Context, req *types.QueryOptions) soap.HasFault {
	machine := o.owner()
	if machine == nil {
		return o.OptionManager.QueryOptions(req)
	}
	var found []types.BaseOptionValue
	locked(ctx, machine.system, func() {
		for _, option := range machine.system.Config.Option {
			if strings.HasPrefix(option.GetOptionValue().Key, req.Name) {
				found = append(found, option)
			}
		}
	})
	if len(found) == 0 {
		return &methods.QueryOptionsBody{Fault_: simulator.Fault("", &types.InvalidName{Name: req.Name})}
	}
	return &methods.QueryOptionsBody{Res: &types.QueryOptionsResponse{Returnval: found}}
}

// UpdateOptions changes options the host has; a boot option takes effect at the next boot.
func (o *options) UpdateOptions(ctx *simulator.Context, req *types.UpdateOptions) soap.HasFault {
	machine := o.owner()
	if machine == nil {
		return o.OptionManager.UpdateOptions(req)
	}
	for _, change := range req.ChangedValue {
		value := change.GetOptionValue()
		if fault := o.lab.setOption(ctx, machine, value.Key, value.Value); fault != nil {
			return &methods.UpdateOptionsBody{Fault_: simulator.Fault(sentence(fault), fault)}
		}
	}
	return &methods.UpdateOptionsBody{Res: &types.UpdateOptionsResponse{}}
}

func (l *Lab) setOption(ctx *simulator.Context, machine *esx, key string, value any) types.BaseMethodFault {
	if !l.writeOption(ctx, machine, key, value) {
		return &types.InvalidName{Name: key}
	}
	if name, ok := strings.CutPrefix(key, kernelPrefix); ok {
		l.setKernel(ctx, machine, name, strings.EqualFold(fmt.Sprint(value), "true"))
	}
	return nil
}

// writeOption replaces an option the host has; readers may hold the old one.
func (l *Lab) writeOption(ctx *simulator.Context, machine *esx, key string, value any) (known bool) {
	locked(ctx, machine.system, func() {
		options := append([]types.BaseOptionValue(nil), machine.system.Config.Option...)
		for i, option := range options {
			if option.GetOptionValue().Key == key {
				options[i], known = &types.OptionValue{Key: key, Value: value}, true
			}
		}
		if known {
			ctx.Map.Update(ctx, machine.system, []types.PropertyChange{{Name: "config.option", Val: options}})
		}
	})
	return known
}

// setKernel configures a boot option, and the advanced option of the same name where the ESXi version has one.
func (l *Lab) setKernel(ctx *simulator.Context, machine *esx, name string, value bool) bool {
	if !l.Rack.SetKernel(machine.name, name, value) {
		return false
	}
	l.writeOption(ctx, machine, kernelPrefix+name, l.view(machine).Kernel[name].Configured)
	return true
}
