package server

import (
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
)

func TestAnImportHasALeaseWithAnAddressForEachDisk(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	spec := gpuSpec("imported")
	backing := &types.VirtualDiskFlatVer2BackingInfo{DiskMode: string(types.VirtualDiskModePersistent)}
	backing.FileName = "[vsan]"
	disk := &types.VirtualDisk{CapacityInKB: 1 << 20}
	disk.Key, disk.ControllerKey, disk.UnitNumber, disk.Backing = -1, 1000, types.NewInt32(0), backing
	made := added(disk)
	made.FileOperation = types.VirtualDeviceConfigSpecFileOperationCreate
	spec.DeviceChange = append(spec.DeviceChange, made)
	pool := object.NewResourcePool(r.client, r.pool())
	lease, err := pool.ImportVApp(r.ctx, &types.VirtualMachineImportSpec{ConfigSpec: spec}, r.folder(), nil)
	if err != nil {
		t.Fatal(err)
	}
	info, err := lease.Wait(within(t), nil)
	if err != nil || len(info.Items) != 1 || info.Items[0].URL.Host != r.lab.Address() {
		t.Fatalf("%+v, %v", info, err)
	}
	if err := lease.Complete(r.ctx); err != nil {
		t.Error(err)
	}
	if info.Entity != r.vm("imported").Reference() {
		t.Errorf("the lease is of %v", info.Entity)
	}
}
