package server

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
)

// signedIn is a context as that of a call over the network.
func signedIn(lab *Lab) *simulator.Context {
	return &simulator.Context{
		Context: context.Background(),
		Map:     lab.Context.Map,
		Session: &simulator.Session{
			UserSession: types.UserSession{UserName: "somebody"}, Registry: simulator.NewRegistry(), Map: lab.Context.Map,
		},
	}
}

// propertyNames are all that an object's type has, and some below them.
func propertyNames(kind reflect.Type) []string {
	var names []string
	for i := range kind.NumField() {
		field := kind.Field(i)
		switch {
		case field.Anonymous:
			names = append(names, propertyNames(field.Type)...)
		case field.Name != "Self":
			names = append(names, strings.ToLower(field.Name[:1])+field.Name[1:])
		}
	}
	return append(names, "config.hardware.device", "config.extraConfig", "runtime.host", "summary.config.name", "no.such")
}

// firstDifference shows both texts from shortly before where they part.
func firstDifference(ours, theirs string) string {
	at := 0
	for at < min(len(ours), len(theirs)) && ours[at] == theirs[at] {
		at++
	}
	from := max(0, at-120)
	return "…" + ours[from:min(len(ours), at+120)] + "…\n  is the simulator's\n…" + theirs[from:min(len(theirs), at+120)] + "…"
}

// What the lab answers is what the simulator would, for every object and every property of it.
func TestABulkReadAnswersAsTheSimulatorDoes(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	ctx := signedIn(lab)
	compared := 0
	for _, object := range lab.Context.Map.All("") {
		reference := object.Reference()
		names := propertyNames(managedObject(ctx, reference).Type())
		specs := []types.PropertyFilterSpec{{
			PropSet:   []types.PropertySpec{{Type: reference.Type, PathSet: names}},
			ObjectSet: []types.ObjectSpec{{Obj: reference}},
		}}
		ours, ok := readBulk(ctx, specs)
		if !ok || len(ours) != 1 {
			t.Fatalf("%s: not read: %d objects", reference, len(ours))
		}
		answer := new(simulator.PropertyCollector).RetrievePropertiesEx(ctx, &types.RetrievePropertiesEx{SpecSet: specs})
		theirs := encode(answer.(*methods.RetrievePropertiesExBody).Res.Returnval.Objects[0])
		if string(ours[0].Content) != string(theirs.Content) {
			t.Errorf("%s: %s", reference, firstDifference(string(ours[0].Content), string(theirs.Content)))
		}
		compared++
	}
	if compared < 20 {
		t.Errorf("only %d objects were compared", compared)
	}
}

// A path that no property has is named so, and holds no lock.
func TestAPathThatIsNoneIsAMissingProperty(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	ctx := signedIn(lab)
	machine := lab.Context.Map.Any("VirtualMachine").Reference()
	for _, name := range []string{"", "config.", ".name", "config..name", "name.x", "layoutEx.file.key"} {
		read, ok := readBulk(ctx, []types.PropertyFilterSpec{{
			PropSet:   []types.PropertySpec{{Type: "VirtualMachine", PathSet: []string{name}}},
			ObjectSet: []types.ObjectSpec{{Obj: machine}},
		}})
		if !ok || len(read) != 1 || !strings.Contains(string(read[0].Content), "<missingSet><path>"+name+"</path>") {
			t.Errorf("%q: %s", name, read)
		}
	}
}

// An object may go between two reads, as tasks and views do.
func TestAnObjectThatHasGoneIsTheSimulatorsToName(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	ctx := signedIn(lab)
	gone := types.ManagedObjectReference{Type: "Task", Value: "task-gone"}
	wanted := []types.PropertySpec{{Type: "Task", PathSet: []string{"info.state"}}}
	if _, plain := readPlainValues(ctx, wanted, gone); plain {
		t.Error("values were read of a task that has gone")
	}
	step := &types.TraversalSpec{Path: "view"}
	start := types.ObjectSpec{Obj: gone, SelectSet: []types.BaseSelectionSpec{step}}
	if _, ok := readBulk(ctx, []types.PropertyFilterSpec{{PropSet: wanted, ObjectSet: []types.ObjectSpec{start}}}); ok {
		t.Error("a view that has gone was followed")
	}
}

func TestAViewIsReadInPages(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	client := login(t, lab)
	viewed, err := view.NewManager(client.Client).CreateContainerView(within(t), client.ServiceContent.RootFolder, []string{"VirtualMachine"}, true)
	if err != nil {
		t.Fatal(err)
	}
	step := &types.TraversalSpec{Type: "ContainerView", Path: "view", Skip: types.NewBool(false)}
	start := types.ObjectSpec{Obj: viewed.Reference(), Skip: types.NewBool(true), SelectSet: []types.BaseSelectionSpec{step}}
	wanted := []types.PropertySpec{{Type: "VirtualMachine", PathSet: []string{"name"}}}
	read := func(most int32) (names []string, pages int) {
		first, err := methods.RetrievePropertiesEx(within(t), client, &types.RetrievePropertiesEx{
			This:    client.ServiceContent.PropertyCollector,
			SpecSet: []types.PropertyFilterSpec{{PropSet: wanted, ObjectSet: []types.ObjectSpec{start}}},
			Options: types.RetrieveOptions{MaxObjects: most},
		})
		if err != nil {
			t.Fatal(err)
		}
		for page := first.Returnval; ; {
			pages++
			for _, object := range page.Objects {
				names = append(names, object.PropSet[0].Val.(string))
			}
			if page.Token == "" {
				return names, pages
			}
			next, err := methods.ContinueRetrievePropertiesEx(within(t), client, &types.ContinueRetrievePropertiesEx{
				This: client.ServiceContent.PropertyCollector, Token: page.Token,
			})
			if err != nil {
				t.Fatal(err)
			}
			page = &next.Returnval
		}
	}
	whole, one := read(0)
	parts, several := read(2)
	if one != 1 || several != (len(whole)+1)/2 || !reflect.DeepEqual(whole, parts) {
		t.Errorf("%d names in %d pages, and %d in %d", len(whole), one, len(parts), several)
	}
}

// A property may be read while it changes: the answer is one or the other.
func TestAReadDoesNotMeetAHalfChangedObject(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	ctx := signedIn(lab)
	machine := lab.Context.Map.Any("VirtualMachine").(*simulator.VirtualMachine)
	specs := []types.PropertyFilterSpec{{
		PropSet:   []types.PropertySpec{{Type: "VirtualMachine", PathSet: []string{"config.extraConfig"}}},
		ObjectSet: []types.ObjectSpec{{Obj: machine.Self}},
	}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			other := signedIn(lab)
			other.WithLock(machine, func() {
				before := machine.Config.ExtraConfig
				machine.Config.ExtraConfig = append(slices.Clone(before), &types.OptionValue{Key: "half", Value: "made"})
				time.Sleep(50 * time.Microsecond)
				machine.Config.ExtraConfig = before
			})
		}
	}()
	var first []byte
	for range 200 {
		read, ok := readBulk(ctx, specs)
		if !ok {
			t.Fatal("not read")
		}
		if first == nil {
			first = read[0].Content
		}
		if string(first) != string(read[0].Content) {
			t.Fatalf("%s\nis not\n%s", read[0].Content, first)
		}
	}
	<-done
}
