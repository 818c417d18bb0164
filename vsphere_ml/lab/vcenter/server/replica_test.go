package server

import (
	"reflect"
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/types"
)

func TestReplicaIsEqualAndSharesNothing(t *testing.T) {
	disk := &types.VirtualDisk{CapacityInKB: 7}
	disk.UnitNumber = types.NewInt32(1)
	disk.DeviceInfo = &types.Description{Label: "Hard disk 1"}
	disk.Backing = &types.VirtualDiskFlatVer2BackingInfo{Parent: &types.VirtualDiskFlatVer2BackingInfo{Uuid: "parent"}}
	disk.Iofilter = []string{"a"}
	original := types.BaseVirtualDevice(disk)

	same := replica(original)
	if !reflect.DeepEqual(same, original) {
		t.Fatalf("%+v is not %+v", same, original)
	}
	copied := same.(*types.VirtualDisk)
	*copied.UnitNumber = 2
	copied.DeviceInfo.GetDescription().Label = "other"
	copied.Backing.(*types.VirtualDiskFlatVer2BackingInfo).Parent.Uuid = "other"
	copied.Iofilter[0] = "b"
	if *disk.UnitNumber != 1 || disk.DeviceInfo.GetDescription().Label != "Hard disk 1" || disk.Iofilter[0] != "a" ||
		disk.Backing.(*types.VirtualDiskFlatVer2BackingInfo).Parent.Uuid != "parent" {
		t.Error("a write to the copy reached the original")
	}
}

func TestReplicaKeepsTimes(t *testing.T) {
	now := time.Now()
	if same := replica(&now); !same.Equal(now) || same == &now {
		t.Errorf("%v became %v", now, same)
	}
}
