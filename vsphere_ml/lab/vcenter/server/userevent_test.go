package server

import (
	"testing"

	"github.com/vmware/govmomi/event"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
)

func TestALineOfAClientsOwnIsAmongTheEvents(t *testing.T) {
	client := login(t, startLab(t, "quad-8.0u3"))
	datacenter, err := finder(t, client).DefaultDatacenter(within(t))
	if err != nil {
		t.Fatal(err)
	}
	manager := event.NewManager(client.Client)
	request := types.LogUserEvent{This: manager.Reference(), Entity: datacenter.Reference(), Msg: "changes cluster train"}
	if _, err := methods.LogUserEvent(within(t), client, &request); err != nil {
		t.Fatal(err)
	}
	found, err := manager.QueryEvents(within(t), types.EventFilterSpec{EventTypeId: []string{"GeneralUserEvent"}})
	if err != nil || len(found) != 1 {
		t.Fatalf("events %v: %v", found, err)
	}
	logged := found[0].(*types.GeneralUserEvent)
	if logged.Message != "changes cluster train" || logged.Entity.Entity != datacenter.Reference() {
		t.Errorf("event %+v", logged)
	}
	request.Entity.Value = "datacenter-none"
	if _, err := methods.LogUserEvent(within(t), client, &request); err == nil {
		t.Error("an event of nothing was logged")
	}
}

func TestACollectorOfEventsLastsAsLongAsItsSession(t *testing.T) {
	client := login(t, startLab(t, "quad-8.0u3"))
	collector, err := event.NewManager(client.Client).CreateCollectorForEvents(within(t), types.EventFilterSpec{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collector.LatestPage(within(t)); err != nil {
		t.Error(err)
	}
}
