package server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/simulator/vpx"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// provisioning is what the making of VMs shares.
type provisioning struct {
	// creating lets one VM be made at a time, so that two cannot take one name.
	creating sync.Mutex
}

// locked runs the work with the object's lock, and gives it back even when the work panics.
func locked(ctx *simulator.Context, object mo.Reference, work func()) {
	unlock := ctx.Map.AcquireLock(ctx, object)
	defer unlock()
	work()
}

// delegate runs one of the simulator's own tasks to its end. The starting call needs the object's lock, which the
// task then takes over.
func delegate(ctx *simulator.Context, object mo.Reference, begin func() types.ManagedObjectReference) (types.AnyType, types.BaseMethodFault) {
	var reference types.ManagedObjectReference
	locked(ctx, object, func() { reference = begin() })
	task := ctx.Map.Get(reference).(*simulator.Task)
	await(ctx, task)
	var result types.AnyType
	var failure *types.LocalizedMethodFault
	locked(ctx, task, func() { result, failure = task.Info.Result, task.Info.Error })
	forgetTask(ctx, object, reference) // the client watches the lab's own task
	if failure != nil {
		return nil, failure.Fault
	}
	return result, nil
}

// forgetTask removes a task that no client knows, also from the lists of recent ones.
func forgetTask(ctx *simulator.Context, object mo.Reference, task types.ManagedObjectReference) {
	ctx.Map.Remove(ctx, task)
	without := func(recent []types.ManagedObjectReference) []types.PropertyChange {
		kept := slices.DeleteFunc(slices.Clone(recent), func(each types.ManagedObjectReference) bool { return each == task })
		return []types.PropertyChange{{Name: "recentTask", Val: kept}}
	}
	if entity, ok := object.(mo.Entity); ok && ctx.Map.Get(object.Reference()) != nil {
		locked(ctx, object, func() { ctx.Map.Update(ctx, object, without(entity.Entity().RecentTask)) })
	}
	if manager, ok := ctx.Map.Get(*vpx.ServiceContent.TaskManager).(*simulator.TaskManager); ok {
		manager.Lock()
		defer manager.Unlock()
		ctx.Map.Update(ctx, manager, without(manager.RecentTask))
	}
}

// How often a delegated task is looked at. The simulator's own Task.Wait looks every 10 ms (govmomi 0.56.0), which is
// most of a clone's time.
const glance = 200 * time.Microsecond

// await waits for a delegated task, without sharing the locks that it works with.
func await(ctx *simulator.Context, task *simulator.Task) {
	apart := &simulator.Context{Map: ctx.Map}
	for !finished(apart, task) {
		time.Sleep(glance)
	}
}

// machineOf is the simulator's VM of a reference, or nil.
func machineOf(ctx *simulator.Context, reference types.ManagedObjectReference) *simulator.VirtualMachine {
	machine, _ := ctx.Map.Get(reference).(*simulator.VirtualMachine)
	return machine
}

// esxOf is the lab's host of a reference, or nil.
func (l *Lab) esxOf(reference *types.ManagedObjectReference) *esx {
	if reference == nil {
		return nil
	}
	return l.site.byReference[*reference]
}

// hardwareVersion is the number in vmx-20, or 0.
func hardwareVersion(version string) int {
	number, _ := strconv.Atoi(strings.TrimPrefix(version, "vmx-"))
	return number
}

func isTrue(value *bool) bool { return value != nil && *value }

// extraConfig is the value of a key, compared as ESXi does: without regard to case.
func extraConfig(options []types.BaseOptionValue, key string) string {
	for _, option := range options {
		if value := option.GetOptionValue(); strings.EqualFold(value.Key, key) {
			return fmt.Sprint(value.Value)
		}
	}
	return ""
}

// mergeExtraConfig writes the changes over the options; an empty value removes its key.
//
// The simulator is not asked to do it: it takes keys such as SET.x for commands, and an unknown one ends the process.
func mergeExtraConfig(options, changes []types.BaseOptionValue) []types.BaseOptionValue {
	merged := make([]types.BaseOptionValue, 0, len(options)+len(changes))
	for _, option := range options {
		if option.GetOptionValue().Key != "govcsim" {
			merged = append(merged, option)
		}
	}
	for _, change := range changes {
		value := *change.GetOptionValue()
		place := len(merged)
		for i, option := range merged {
			if option.GetOptionValue().Key == value.Key {
				place = i
			}
		}
		switch {
		case value.Value == nil || value.Value == "":
			merged = append(merged[:place], merged[min(place+1, len(merged)):]...)
		case place == len(merged):
			merged = append(merged, &value)
		default:
			merged[place] = &value
		}
	}
	return merged
}
