package server

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

// site is what the lab built, by name, for finding it again without walking the inventory.
type site struct {
	datacenter  *simulator.Datacenter
	clusters    map[string]*simulator.ClusterComputeResource
	hosts       map[string]*esx
	byReference map[types.ManagedObjectReference]*esx
	datastores  map[string]*simulator.Datastore
	portgroups  map[string]*simulator.DistributedVirtualPortgroup
	reboots     reboots
	tools       map[types.ManagedObjectReference]bool // standing VMs whose guests run VMware Tools
}

// build makes the whole inventory of the topology.
func (l *Lab) build() error {
	l.site = &site{
		clusters: map[string]*simulator.ClusterComputeResource{}, hosts: map[string]*esx{},
		byReference: map[types.ManagedObjectReference]*esx{}, datastores: map[string]*simulator.Datastore{},
		portgroups: map[string]*simulator.DistributedVirtualPortgroup{}, tools: map[types.ManagedObjectReference]bool{},
	}
	repairCollector(l.Context)
	l.Context.Map.AddHandler(newcomers{l})
	for _, step := range []func() error{
		l.addDirectPath, l.addPerformance, l.addDatacenter, l.addClusters, l.addHosts, l.addDatastores, l.addSwitches, l.addTemplates, l.addStandingVMs, l.restoreFreeSpace, l.openShells,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) addDatacenter() error {
	root := l.Context.Map.Get(l.service.Context.Map.Get(serviceInstance).(*simulator.ServiceInstance).Content.RootFolder).(*simulator.Folder)
	body := root.CreateDatacenter(l.Context, &types.CreateDatacenter{This: root.Self, Name: l.File.Datacenter.Name})
	if fault := body.Fault(); fault != nil {
		return fmt.Errorf("datacenter %q: %s", l.File.Datacenter.Name, fault.String)
	}
	reference := body.(*methods.CreateDatacenterBody).Res.Returnval
	l.site.datacenter = l.Context.Map.Get(reference).(*simulator.Datacenter)
	return nil
}

func (l *Lab) folder(reference types.ManagedObjectReference) *simulator.Folder {
	return l.Context.Map.Get(reference).(*simulator.Folder)
}

func (l *Lab) addClusters() error {
	hosts := l.folder(l.site.datacenter.HostFolder)
	for _, described := range l.File.Clusters {
		made, fault := simulator.CreateClusterComputeResource(l.Context, hosts, described.Name, types.ClusterConfigSpecEx{})
		if fault != nil {
			return fmt.Errorf("cluster %q: %T", described.Name, fault)
		}
		config := made.ConfigurationEx.(*types.ClusterConfigInfoEx)
		config.DrsConfig.Enabled = types.NewBool(described.DRS != "")
		config.DrsConfig.DefaultVmBehavior = types.DrsBehavior(described.DRS)
		if described.DRS == "" {
			config.DrsConfig.DefaultVmBehavior = types.DrsBehaviorManual
		}
		config.DrsConfig.VmotionRate = 3
		for _, key := range slices.Sorted(maps.Keys(described.DRSOptions)) {
			option := &types.OptionValue{Key: key, Value: described.DRSOptions[key]}
			config.DrsConfig.Option = append(config.DrsConfig.Option, option)
		}
		config.DasConfig = availability(described)
		made.LifecycleManaged = types.NewBool(described.Image)
		l.site.clusters[described.Name] = made
	}
	return nil
}

func (l *Lab) datastoreDir() string { return filepath.Join(l.options.StateDir, "datastores") }

func (l *Lab) addDatastores() error {
	if err := os.RemoveAll(l.datastoreDir()); err != nil {
		return err
	}
	for _, described := range l.File.Datastores {
		if err := l.addDatastore(described); err != nil {
			return err
		}
	}
	return nil
}

// addDatastore mounts the store on its hosts, directly for the same reason as addHosts.
func (l *Lab) addDatastore(described topology.Datastore) error {
	directory := filepath.Join(l.datastoreDir(), filepath.Base(described.Name))
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	if described.Files != "" {
		if err := os.CopyFS(directory, os.DirFS(described.Files)); err != nil {
			return fmt.Errorf("datastore %q: files: %w", described.Name, err)
		}
	}
	store := &simulator.Datastore{}
	store.Name = described.Name
	l.putChild(l.folder(l.site.datacenter.DatastoreFolder), store)
	l.site.datacenter.Datastore = append(l.site.datacenter.Datastore, store.Self)
	capacity, free := int64(described.CapacityGiB)*gib, int64(described.FreeGiB)*gib
	info := types.DatastoreInfo{Name: described.Name, Url: directory, FreeSpace: free, MaxFileSize: 62 << 40, Timestamp: types.NewTime(l.Started)}
	store.Info = &types.VmfsDatastoreInfo{DatastoreInfo: info, Vmfs: &types.HostVmfsVolume{
		HostFileSystemVolume: types.HostFileSystemVolume{Type: "VMFS", Name: described.Name, Capacity: capacity},
		BlockSizeMb:          1, MaxBlocks: 63963136, MajorVersion: 6, Version: "6.82", Uuid: stableUUID(described.Name),
		Extent: []types.HostScsiDiskPartition{}, VmfsUpgradable: false,
	}}
	store.Summary = types.DatastoreSummary{
		Datastore: &store.Self, Name: described.Name, Url: directory, Capacity: capacity, FreeSpace: free, Accessible: true,
		MultipleHostAccess: types.NewBool(true), Type: "VMFS", MaintenanceMode: string(types.DatastoreSummaryMaintenanceModeStateNormal),
	}
	store.Capability = types.DatastoreCapability{
		DirectoryHierarchySupported: true, PerFileThinProvisioningSupported: true,
		SeSparseSupported: types.NewBool(true), TopLevelDirectoryCreateSupported: types.NewBool(true),
	}
	store.Browser = l.browserOf(store)
	l.mount(store, described.Hosts)
	l.site.datastores[described.Name] = store
	return nil
}

// restoreFreeSpace makes free_gib what is free beside the templates and standing VMs, as the topology means it.
func (l *Lab) restoreFreeSpace() error {
	for _, described := range l.File.Datastores {
		store, free := l.site.datastores[described.Name], int64(described.FreeGiB)*gib
		store.Summary.FreeSpace = free
		store.Info.GetDatastoreInfo().FreeSpace = free
	}
	return nil
}

func (l *Lab) browserOf(store *simulator.Datastore) types.ManagedObjectReference {
	browser := &simulator.HostDatastoreBrowser{}
	browser.Datastore = []types.ManagedObjectReference{store.Self}
	return l.Context.Map.Put(browser).Reference()
}

// mount shows the store to the named hosts, or to all when none is named.
func (l *Lab) mount(store *simulator.Datastore, names []string) {
	for _, described := range l.File.Clusters {
		for _, name := range described.Hosts {
			if len(names) > 0 && !slices.Contains(names, name) {
				continue
			}
			machine := l.site.hosts[name]
			host := machine.system
			host.Datastore = append(host.Datastore, store.Self)
			system := l.Context.Map.Get(*host.ConfigManager.DatastoreSystem).(*simulator.HostDatastoreSystem)
			system.Datastore = host.Datastore
			store.Host = append(store.Host, types.DatastoreHostMount{Key: host.Self, MountInfo: types.HostMountInfo{
				Path: "/vmfs/volumes/" + store.Name, AccessMode: string(types.HostMountModeReadWrite),
				Mounted: types.NewBool(true), Accessible: types.NewBool(true),
			}})
			if !slices.Contains(machine.cluster.Datastore, store.Self) {
				machine.cluster.Datastore = append(machine.cluster.Datastore, store.Self)
			}
		}
	}
}

// RefreshDatastore leaves the topology's numbers alone; the simulator would set one terabyte for each host.
func (d *datastore) RefreshDatastore(*simulator.Context, *types.RefreshDatastore) soap.HasFault {
	return &methods.RefreshDatastoreBody{Res: &types.RefreshDatastoreResponse{}}
}
