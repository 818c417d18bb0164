package server

import (
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// How long changes may gather before a waiting client is told; a real vCenter gathers them too.
const gathering = 4 * time.Millisecond

// updates is what a collector has told of plainly listed objects. The simulator reads every object of every filter anew
// for each change anywhere in the inventory (govmomi 0.56.0), which makes watching many tasks cost their square.
type updates struct {
	mu      sync.Mutex
	self    types.ManagedObjectReference
	changed map[types.ManagedObjectReference]bool
	gone    map[types.ManagedObjectReference]bool
	told    map[types.ManagedObjectReference]map[types.ManagedObjectReference]map[string]types.AnyType // by filter, object, path
	version int
	cancel  chan struct{}
}

// Reference is the collector's own, so that the simulator's end of the collector ends this watch too.
func (u *updates) Reference() types.ManagedObjectReference { return u.self }

// PutObject has nothing to do: listed objects exist already.
func (u *updates) PutObject(*simulator.Context, mo.Reference) {}

// UpdateObject notes an object to be read anew.
func (u *updates) UpdateObject(_ *simulator.Context, object mo.Reference, _ []types.PropertyChange) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.changed[object.Reference()] = true
}

// RemoveObject notes an object that has gone.
func (u *updates) RemoveObject(_ *simulator.Context, reference types.ManagedObjectReference) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.gone[reference] = true
}

// CreatePropertyCollector makes one of ours; the simulator would make a plain one of its own.
func (c *collector) CreatePropertyCollector(ctx *simulator.Context, _ *types.CreatePropertyCollector) soap.HasFault {
	made := &collector{}
	made.Self.Type = c.Self.Type
	return &methods.CreatePropertyCollectorBody{
		Res: &types.CreatePropertyCollectorResponse{Returnval: ctx.Session.Put(made).Reference()},
	}
}

// WaitForUpdatesEx answers for filters over listed objects; filters that walk the inventory are the simulator's.
func (c *collector) WaitForUpdatesEx(ctx *simulator.Context, request *types.WaitForUpdatesEx) soap.HasFault {
	filters, plain := c.filters(ctx)
	if !plain {
		return c.PropertyCollector.WaitForUpdatesEx(ctx, request)
	}
	watch, cancelled := c.watch(ctx, request.Version)
	set := watch.gather(ctx, c, filters)
	for end := deadline(request.Options); set == nil; set = watch.gather(ctx, c, filters) {
		select {
		case <-cancelled:
			return &methods.WaitForUpdatesExBody{Fault_: simulator.Fault("", &types.RequestCanceled{})}
		case <-end:
			return &methods.WaitForUpdatesExBody{Res: &types.WaitForUpdatesExResponse{}}
		case <-time.After(gathering):
		}
	}
	return &methods.WaitForUpdatesExBody{Res: &types.WaitForUpdatesExResponse{Returnval: set}}
}

// CancelWaitForUpdates ends a wait of either kind.
func (c *collector) CancelWaitForUpdates(request *types.CancelWaitForUpdates) soap.HasFault {
	c.starting.Lock()
	if c.updates != nil {
		close(c.updates.cancel)
		c.updates.cancel = make(chan struct{})
	}
	c.starting.Unlock()
	return c.PropertyCollector.CancelWaitForUpdates(request)
}

// filters are the collector's, and whether all of them only list objects.
func (c *collector) filters(ctx *simulator.Context) ([]*simulator.PropertyFilter, bool) {
	found := make([]*simulator.PropertyFilter, 0, len(c.Filter))
	for _, reference := range c.Filter {
		filter, ok := ctx.Session.Get(reference).(*simulator.PropertyFilter)
		if !ok {
			continue
		}
		for _, object := range filter.Spec.ObjectSet {
			if len(object.SelectSet) != 0 {
				return nil, false
			}
		}
		found = append(found, filter)
	}
	return found, len(found) > 0
}

// watch is the watch under way; an empty version begins a new one, which tells everything again.
func (c *collector) watch(ctx *simulator.Context, version string) (*updates, chan struct{}) {
	c.starting.Lock()
	defer c.starting.Unlock()
	if c.updates == nil || version == "" {
		c.updates = &updates{
			self:    c.Self,
			changed: map[types.ManagedObjectReference]bool{},
			gone:    map[types.ManagedObjectReference]bool{},
			told:    map[types.ManagedObjectReference]map[types.ManagedObjectReference]map[string]types.AnyType{},
			cancel:  make(chan struct{}),
		}
		ctx.Map.AddHandler(c.updates)
	}
	return c.updates, c.updates.cancel
}

// gather is what has changed since the last answer, or nil.
func (u *updates) gather(ctx *simulator.Context, c *collector, filters []*simulator.PropertyFilter) *types.UpdateSet {
	changed, gone := u.news()
	set := &types.UpdateSet{}
	for _, filter := range filters {
		update := types.PropertyFilterUpdate{Filter: filter.Self}
		known := u.told[filter.Self]
		if known == nil {
			known = map[types.ManagedObjectReference]map[string]types.AnyType{}
			u.told[filter.Self] = known
		}
		for _, object := range filter.Spec.ObjectSet {
			if one := u.object(ctx, c, filter, known, object.Obj, changed, gone); one != nil {
				update.ObjectSet = append(update.ObjectSet, *one)
			}
		}
		if len(update.ObjectSet) > 0 {
			set.FilterSet = append(set.FilterSet, update)
		}
	}
	if len(set.FilterSet) == 0 {
		return nil
	}
	u.version++
	set.Version = strconv.Itoa(u.version)
	return set
}

// news is what was noted since the last call.
func (u *updates) news() (changed, gone map[types.ManagedObjectReference]bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	changed, gone = u.changed, u.gone
	u.changed = map[types.ManagedObjectReference]bool{}
	u.gone = map[types.ManagedObjectReference]bool{}
	return changed, gone
}

// object is the update of one object, or nil when it is as told.
func (u *updates) object(
	ctx *simulator.Context,
	c *collector,
	filter *simulator.PropertyFilter,
	known map[types.ManagedObjectReference]map[string]types.AnyType,
	reference types.ManagedObjectReference,
	changed, gone map[types.ManagedObjectReference]bool,
) *types.ObjectUpdate {
	last, seen := known[reference]
	if gone[reference] && seen {
		delete(known, reference)
		return &types.ObjectUpdate{Kind: types.ObjectUpdateKindLeave, Obj: reference}
	}
	if seen && !changed[reference] {
		return nil
	}
	now, ok := c.read(ctx, filter.Spec.PropSet, reference)
	if !ok {
		return nil
	}
	known[reference] = now
	update := &types.ObjectUpdate{Kind: types.ObjectUpdateKindModify, Obj: reference, ChangeSet: difference(last, now)}
	if !seen {
		update.Kind = types.ObjectUpdateKindEnter
	} else if len(update.ChangeSet) == 0 {
		return nil
	}
	return update
}

// read is the object's properties by path, as a client would retrieve them.
func (c *collector) read(
	ctx *simulator.Context, properties []types.PropertySpec, reference types.ManagedObjectReference,
) (map[string]types.AnyType, bool) {
	if values, ok := readPlainValues(ctx, properties, reference); ok {
		return values, true
	}
	answer, ok := c.PropertyCollector.RetrievePropertiesEx(ctx, &types.RetrievePropertiesEx{
		This:    c.Self,
		SpecSet: []types.PropertyFilterSpec{{PropSet: properties, ObjectSet: []types.ObjectSpec{{Obj: reference}}}},
	}).(*methods.RetrievePropertiesExBody)
	if !ok || answer.Fault_ != nil || answer.Res == nil || answer.Res.Returnval == nil {
		return nil, false
	}
	values := map[string]types.AnyType{}
	for _, object := range answer.Res.Returnval.Objects {
		for _, property := range object.PropSet {
			values[property.Name] = property.Val
		}
	}
	return values, true
}

// difference is what turns one reading into the next.
func difference(last, now map[string]types.AnyType) []types.PropertyChange {
	var changes []types.PropertyChange
	for path, value := range now {
		if !reflect.DeepEqual(last[path], value) {
			changes = append(changes, types.PropertyChange{Name: path, Op: types.PropertyChangeOpAssign, Val: value})
		}
	}
	for path := range last {
		if _, ok := now[path]; !ok {
			changes = append(changes, types.PropertyChange{Name: path, Op: types.PropertyChangeOpIndirectRemove})
		}
	}
	return changes
}

// deadline is when a wait without news ends; never, when the client sets none.
func deadline(options *types.WaitOptions) <-chan time.Time {
	if options == nil || options.MaxWaitSeconds == nil {
		return nil
	}
	return time.After(time.Duration(*options.MaxWaitSeconds) * time.Second)
}
