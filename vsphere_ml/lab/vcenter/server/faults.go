package server

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// FaultRule asks for a fault. Kind sync answers the call itself with it, kind task lets the task end in it.
type FaultRule struct {
	Method  string `json:"method"`            // CloneVM_Task; a glob
	Fault   string `json:"fault"`             // a fault type of the vSphere API, e.g. NoPermission
	Kind    string `json:"kind"`              // sync or task
	Name    string `json:"name,omitempty"`    // the entity's name or that of the VM to be made; a glob, empty for all
	Skip    int    `json:"skip,omitempty"`    // so many matching calls pass first
	Count   int    `json:"count,omitempty"`   // so many calls fail; 0 for all that follow
	Message string `json:"message,omitempty"` // the sentence that clients read
	Hits    int    `json:"hits"`              // how many calls it has failed
}

// check says what is wrong with a rule, in words.
func (r FaultRule) check() error {
	if r.Method == "" {
		return fmt.Errorf("method is missing: name an API method such as CloneVM_Task")
	}
	if r.Kind != "sync" && r.Kind != "task" {
		return fmt.Errorf("kind is %q: it must be sync or task", r.Kind)
	}
	if newFault(r.Fault) == nil {
		return fmt.Errorf("fault is %q: it must be a fault type of the vSphere API, such as NoPermission", r.Fault)
	}
	for _, pattern := range []string{r.Method, r.Name} {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("%q is no glob pattern", pattern)
		}
	}
	return nil
}

func (r FaultRule) matches(kind, method string, name func() string) bool {
	if r.Kind != kind {
		return false
	}
	if ok, _ := path.Match(r.Method, method); !ok {
		return false
	}
	if r.Name == "" {
		return true
	}
	ok, _ := path.Match(r.Name, name())
	return ok
}

// faultRules are the rules in force; the first that matches decides.
type faultRules struct {
	mu    sync.Mutex
	rules []*FaultRule
}

func (f *faultRules) add(rules ...FaultRule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, rule := range rules {
		f.rules = append(f.rules, &rule)
	}
}

func (f *faultRules) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

func (f *faultRules) list() []FaultRule {
	f.mu.Lock()
	defer f.mu.Unlock()
	rules := make([]FaultRule, 0, len(f.rules))
	for _, rule := range f.rules {
		rules = append(rules, *rule)
	}
	return rules
}

// call is the fault a synchronous call must answer with, or nil.
func (f *faultRules) call(call *simulator.Method, name func() string) types.BaseMethodFault {
	rule, ok := f.take("sync", call.Name, name)
	if !ok {
		return nil
	}
	fault := newFault(rule.Fault)
	fillReferences(fault, call.This)
	if rule.Message != "" {
		// The hook can only hand over a fault; faultStrings moves this sentence into the reply's faultstring.
		fault.GetMethodFault().FaultMessage = []types.LocalizableMessage{{Key: "vsml.lab.rule", Message: rule.Message}}
	}
	return fault
}

// task is the fault a task must end in, with its sentence, or nil.
func (f *faultRules) task(work job) (types.BaseMethodFault, string) {
	rule, ok := f.take("task", work.Method, func() string { return work.Name })
	if !ok {
		return nil, ""
	}
	fault := newFault(rule.Fault)
	fillReferences(fault, work.Entity.Reference())
	if rule.Message == "" {
		rule.Message = sentence(fault)
	}
	return fault, rule.Message
}

// take counts a call against the first rule that matches it.
func (f *faultRules) take(kind, method string, name func() string) (FaultRule, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, rule := range f.rules {
		if !rule.matches(kind, method, name) {
			continue
		}
		if rule.Skip > 0 {
			rule.Skip--
			return FaultRule{}, false
		}
		rule.Hits++
		if rule.Count > 0 && rule.Hits >= rule.Count {
			f.rules = slices.Delete(f.rules, i, i+1)
		}
		return *rule, true
	}
	return FaultRule{}, false
}

// newFault is an empty fault of that type, or nil when the API has none of that name.
func newFault(name string) types.BaseMethodFault {
	kind, ok := types.TypeFunc()(name)
	if !ok || kind.Kind() != reflect.Struct {
		return nil
	}
	fault, _ := reflect.New(kind).Interface().(types.BaseMethodFault)
	return fault
}

// fillReferences gives a fault the references that the API says it always has.
func fillReferences(fault types.BaseMethodFault, object types.ManagedObjectReference) {
	switch f := fault.(type) {
	case *types.NoPermission:
		f.Object, f.PrivilegeId = &object, "System.View"
	case *types.NotAuthenticated:
		f.Object, f.PrivilegeId = &object, "System.View"
	case *types.TaskInProgress:
		f.Task = types.ManagedObjectReference{Type: "Task", Value: "task-0"} // somebody's, and over by now
	}
}

// delays are how long tasks take, by method.
type delays struct {
	mu      sync.Mutex
	ms      map[string]int
	changed chan struct{} // closed when they change
}

// of is how long the method's tasks take, and what is closed when that may be no longer so.
func (d *delays) of(method string) (time.Duration, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changed == nil {
		d.changed = make(chan struct{})
	}
	return time.Duration(d.ms[method]) * time.Millisecond, d.changed
}

func (d *delays) set(ms map[string]int) error {
	for method, duration := range ms {
		if !strings.HasSuffix(method, "_Task") || duration < 0 {
			return fmt.Errorf("%s = %d: give milliseconds, 0 or more, for a method that ends in _Task", method, duration)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ms == nil {
		d.ms = map[string]int{}
	}
	for method, duration := range ms {
		d.ms[method] = duration
	}
	if d.changed != nil {
		close(d.changed)
		d.changed = nil
	}
	return nil
}

func (d *delays) list() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	copied := make(map[string]int, len(d.ms))
	for method, duration := range d.ms {
		copied[method] = duration
	}
	return copied
}
