package server

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/pbm/methods"
	pbm "github.com/vmware/govmomi/pbm/simulator"
	policy "github.com/vmware/govmomi/pbm/types"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

// policies is the storage policy service (PBM): the simulator's, with vCenter's default policies, and those of the
// topology. A default policy is satisfied by every datastore, another one by those that it names. Its sessions are those
// of /sdk. Terraform's provider signs in there before anything else.
func (l *Lab) policies() *simulator.Registry {
	registry := pbm.New()
	l.addPolicies(registry)
	registry.Put(&complianceManager{ManagedObjectReference: types.ManagedObjectReference{
		Type: "PbmComplianceManager", Value: "complianceManager",
	}, lab: l})
	registry.Handler = func(ctx *simulator.Context, call *simulator.Method) (mo.Reference, types.BaseMethodFault) {
		l.calls.add(call.Name)
		if reply := replyOf(ctx); reply != nil {
			reply.ctx = ctx // what a panic has locked is released through it
		}
		switch o := registry.Get(call.This).(type) {
		case *pbm.ProfileManager:
			return &profileManager{o, l}, nil
		case *pbm.PlacementSolver:
			return &placementSolver{o, l}, nil
		}
		return nil, nil
	}
	return registry
}

type (
	profileManager struct {
		*pbm.ProfileManager
		lab *Lab
	}
	placementSolver struct {
		*pbm.PlacementSolver
		lab *Lab
	}
	complianceManager struct {
		types.ManagedObjectReference
		lab *Lab
	}
)

// addPolicies makes the topology's policies, as an administrator would.
func (l *Lab) addPolicies(registry *simulator.Registry) {
	manager := registry.Get(types.ManagedObjectReference{Type: "PbmProfileProfileManager", Value: "ProfileManager"}).(*pbm.ProfileManager)
	ctx := &simulator.Context{Map: registry, Session: &simulator.Session{}}
	ctx.Session.UserName = l.options.Username
	l.storage.open(l.File.Policies)
	for _, described := range l.File.Policies {
		body := manager.PbmCreate(ctx, &policy.PbmCreate{CreateSpec: policy.PbmCapabilityProfileCreateSpec{
			Name: described.Name, Category: string(policy.PbmProfileCategoryEnumREQUIREMENT),
			ResourceType: policy.PbmProfileResourceType{ResourceType: string(policy.PbmProfileResourceTypeEnumSTORAGE)},
			Constraints:  &policy.PbmCapabilitySubProfileConstraints{},
		}})
		l.storage.name(body.(*methods.PbmCreateBody).Res.Returnval.UniqueId, described)
	}
	known := manager.PbmQueryProfile(&policy.PbmQueryProfile{
		ResourceType: policy.PbmProfileResourceType{ResourceType: string(policy.PbmProfileResourceTypeEnumSTORAGE)},
	})
	for _, each := range known.(*methods.PbmQueryProfileBody).Res.Returnval {
		l.storage.name(each.UniqueId, topology.StoragePolicy{})
	}
}

// storageProfiles are the policies by id, and which of them a VM's home and each of its disks were given.
type storageProfiles struct {
	mu       sync.Mutex
	policies map[string]topology.StoragePolicy
	of       map[string]string // by PBM's key of the object: vm-12, or vm-12:2000
}

func (s *storageProfiles) open(described []topology.StoragePolicy) {
	s.policies = make(map[string]topology.StoragePolicy, len(described))
	s.of = map[string]string{}
}

// name notes a policy; the first note of it counts.
func (s *storageProfiles) name(id string, described topology.StoragePolicy) {
	if _, known := s.policies[id]; !known {
		s.policies[id] = described
	}
}

// satisfied tells whether the datastore satisfies the policy.
func (s *storageProfiles) satisfied(id, datastore string) bool {
	described, known := s.policies[id]
	return known && (described.Name == "" || slices.Contains(described.Datastores, datastore))
}

// set gives the VM's home ("") and disks (by device key) their policies; an empty one takes it away.
func (s *storageProfiles) set(machine types.ManagedObjectReference, profiles map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for device, id := range profiles {
		key := machine.Value
		if device != "" {
			key += ":" + device
		}
		if id == "" {
			delete(s.of, key)
			continue
		}
		s.of[key] = id
	}
}

func (s *storageProfiles) get(key string) (id string, given bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, given = s.of[key]
	return id, given
}

// profileID is the policy that a specification asks for: none asked, or an id that is empty for none at all.
func profileID(specs []types.BaseVirtualMachineProfileSpec) (id string, asked bool) {
	for _, spec := range specs {
		switch each := spec.(type) {
		case *types.VirtualMachineDefinedProfileSpec:
			return each.ProfileId, true
		case *types.VirtualMachineEmptyProfileSpec:
			return "", true
		}
	}
	return "", false
}

// cloneProfiles are the policies of a clone: RelocateSpec.profile is for its home directory alone, a DiskLocator's for
// its disk.
func cloneProfiles(location *types.VirtualMachineRelocateSpec) map[string]string {
	found := map[string]string{}
	if id, asked := profileID(location.Profile); asked {
		found[""] = id
	}
	for _, disk := range location.Disk {
		if id, asked := profileID(disk.Profile); asked {
			found[fmt.Sprint(disk.DiskId)] = id
		}
	}
	return found
}

// reconfiguredProfiles are those of a reconfiguration: vmProfile for the home, a device's profile for the disk.
func reconfiguredProfiles(spec *types.VirtualMachineConfigSpec) map[string]string {
	found := map[string]string{}
	if id, asked := profileID(spec.VmProfile); asked {
		found[""] = id
	}
	for _, change := range spec.DeviceChange {
		device := change.GetVirtualDeviceConfigSpec()
		if id, asked := profileID(device.Profile); asked {
			found[fmt.Sprint(device.Device.GetVirtualDevice().Key)] = id
		}
	}
	return found
}

// checkProfiles refuses a policy that there is none of.
func (l *Lab) checkProfiles(profiles map[string]string) types.BaseMethodFault {
	for _, id := range profiles {
		if _, known := l.storage.policies[id]; id != "" && !known {
			return &types.InvalidArgument{InvalidProperty: "profile"}
		}
	}
	return nil
}

// PbmQueryAssociatedProfile tells the policy of one object.
func (m *profileManager) PbmQueryAssociatedProfile(req *policy.PbmQueryAssociatedProfile) soap.HasFault {
	res := &policy.PbmQueryAssociatedProfileResponse{}
	if id, given := m.lab.storage.get(req.Entity.Key); given {
		res.Returnval = []policy.PbmProfileId{{UniqueId: id}}
	}
	return &methods.PbmQueryAssociatedProfileBody{Res: res}
}

// PbmQueryAssociatedProfiles tells the policy of each object.
func (m *profileManager) PbmQueryAssociatedProfiles(req *policy.PbmQueryAssociatedProfiles) soap.HasFault {
	res := &policy.PbmQueryAssociatedProfilesResponse{}
	for _, entity := range req.Entities {
		told := policy.PbmQueryProfileResult{Object: entity}
		if id, given := m.lab.storage.get(entity.Key); given {
			told.ProfileId = []policy.PbmProfileId{{UniqueId: id}}
		}
		res.Returnval = append(res.Returnval, told)
	}
	return &methods.PbmQueryAssociatedProfilesBody{Res: res}
}

// PbmCheckCompatibility tells of each datastore whether it satisfies the policy: an error where it does not.
func (s *placementSolver) PbmCheckCompatibility(req *policy.PbmCheckCompatibility) soap.HasFault {
	return &methods.PbmCheckCompatibilityBody{Res: &policy.PbmCheckCompatibilityResponse{
		Returnval: s.lab.compatible(req.HubsToSearch, req.Profile.UniqueId),
	}}
}

// PbmCheckRequirements is the same for the policy among the requirements; without one every datastore will do.
func (s *placementSolver) PbmCheckRequirements(req *policy.PbmCheckRequirements) soap.HasFault {
	id := ""
	for _, each := range req.PlacementSubjectRequirement {
		if wanted, ok := each.(*policy.PbmPlacementCapabilityProfileRequirement); ok {
			id = wanted.ProfileId.UniqueId
		}
	}
	return &methods.PbmCheckRequirementsBody{Res: &policy.PbmCheckRequirementsResponse{
		Returnval: s.lab.compatible(req.HubsToSearch, id),
	}}
}

func (l *Lab) compatible(hubs []policy.PbmPlacementHub, id string) []policy.PbmPlacementCompatibilityResult {
	var found []policy.PbmPlacementCompatibilityResult
	for _, store := range l.site.datacenter.Datastore {
		name, hub := l.storeName(store), policy.PbmPlacementHub{HubType: store.Type, HubId: store.Value}
		if len(hubs) > 0 && !slices.Contains(hubs, hub) {
			continue
		}
		told := policy.PbmPlacementCompatibilityResult{Hub: hub}
		if id != "" && !l.storage.satisfied(id, name) {
			told.Error = []types.LocalizedMethodFault{{
				Fault:            &policy.PbmCompatibilityCheckFault{Hub: hub},
				LocalizedMessage: fmt.Sprintf("Datastore '%s' does not match current VM policy.", name),
			}}
		}
		found = append(found, told)
	}
	return found
}

func (l *Lab) storeName(reference types.ManagedObjectReference) string {
	for name, store := range l.site.datastores {
		if store.Self == reference {
			return name
		}
	}
	return ""
}

// PbmFetchComplianceResult tells how far VMs and disks comply with the policies they were given.
func (m *complianceManager) PbmFetchComplianceResult(req *policy.PbmFetchComplianceResult) soap.HasFault {
	return &methods.PbmFetchComplianceResultBody{Res: &policy.PbmFetchComplianceResultResponse{
		Returnval: m.results(req.Entities),
	}}
}

// PbmCheckCompliance is the same: nothing is ever out of date here.
func (m *complianceManager) PbmCheckCompliance(req *policy.PbmCheckCompliance) soap.HasFault {
	return &methods.PbmCheckComplianceBody{Res: &policy.PbmCheckComplianceResponse{
		Returnval: m.results(req.Entities),
	}}
}

func (m *complianceManager) results(entities []policy.PbmServerObjectRef) []policy.PbmComplianceResult {
	var found []policy.PbmComplianceResult
	for _, entity := range entities {
		datastore, there := m.datastore(entity.Key)
		if !there {
			continue // what is not in the inventory is ignored
		}
		told := policy.PbmComplianceResult{
			CheckTime: time.Now(), Entity: entity, ComplianceStatus: string(policy.PbmComplianceStatusNotApplicable),
		}
		if id, given := m.lab.storage.get(entity.Key); given {
			told.Profile = &policy.PbmProfileId{UniqueId: id}
			told.ComplianceStatus = string(policy.PbmComplianceStatusNonCompliant)
			if m.lab.storage.satisfied(id, datastore) {
				told.ComplianceStatus = string(policy.PbmComplianceStatusCompliant)
			}
		}
		found = append(found, told)
	}
	return found
}

// datastore is where the object's files lie: a VM's home by its key, a disk by the VM's and its own.
func (m *complianceManager) datastore(key string) (name string, there bool) {
	id, disk, isDisk := strings.Cut(key, ":")
	ctx := m.lab.Context
	machine := machineOf(ctx, types.ManagedObjectReference{Type: "VirtualMachine", Value: id})
	if machine == nil {
		return "", false
	}
	var file string
	ctx.WithLock(machine, func() {
		file = machine.Config.Files.VmPathName
		for _, device := range object.VirtualDeviceList(machine.Config.Hardware.Device) {
			if base := device.GetVirtualDevice(); isDisk && fmt.Sprint(base.Key) == disk {
				if backing, ok := base.Backing.(types.BaseVirtualDeviceFileBackingInfo); ok {
					file = backing.GetVirtualDeviceFileBackingInfo().FileName
				}
			}
		}
	})
	var path object.DatastorePath
	there = path.FromString(file)
	return path.Datastore, there
}
