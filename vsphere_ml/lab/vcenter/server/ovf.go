package server

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/vmware/govmomi/ovf"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vapi/vcenter"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

const ovfItemPath = "/rest/com/vmware/vcenter/ovf/library-item/id:"

// ovfManager takes from a descriptor also VMware's own `vmw:Config` of the firmware, which the simulator leaves out
// (govmomi 0.56.0).
type ovfManager struct{ *simulator.OvfManager }

func (m *ovfManager) CreateImportSpec(ctx *simulator.Context, request *types.CreateImportSpec) soap.HasFault {
	answer := m.OvfManager.CreateImportSpec(ctx, request)
	body, ok := answer.(*methods.CreateImportSpecBody)
	if !ok || body.Res == nil {
		return answer
	}
	made, ok := body.Res.Returnval.ImportSpec.(*types.VirtualMachineImportSpec)
	described, err := ovf.Unmarshal(strings.NewReader(request.OvfDescriptor))
	if !ok || err != nil {
		return answer
	}
	for _, hardware := range described.VirtualSystem.VirtualHardware {
		for _, config := range hardware.Config {
			if config.Key == "firmware" {
				made.ConfigSpec.Firmware = config.Value
			}
		}
	}
	return answer
}

// abandonImport removes what an import has made when its lease is aborted: "all created inventory objects are removed"
// (vSphere API, ResourcePool.ImportVApp); the simulator leaves it.
func abandonImport(ctx *simulator.Context, call *simulator.Method) {
	if call.Name != "HttpNfcLeaseAbort" || ctx.Session == nil {
		return
	}
	lease, ok := ctx.Session.Get(call.This).(*simulator.HttpNfcLease)
	if !ok || lease.Info == nil {
		return
	}
	if machine, ok := ctx.Map.Get(lease.Info.Entity).(mo.Entity); ok {
		if vm, ok := machine.(*simulator.VirtualMachine); ok {
			vm.DestroyTask(ctx, &types.Destroy_Task{This: vm.Self})
		}
	}
}

// deployments give a VM that is deployed from a library the notes that its deployment asks for (vSphere Automation API,
// LibraryItem.ResourcePoolDeploymentSpec.annotation), which the simulator leaves out.
func (l *Lab) deployments(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, ovfItemPath) {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, mostRequestBytes))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		recorder := httptest.NewRecorder()
		next.ServeHTTP(recorder, r)
		var asked vcenter.Deploy
		var made struct {
			Value vcenter.Deployment `json:"value"`
		}
		if json.Unmarshal(body, &asked) == nil && json.Unmarshal(recorder.Body.Bytes(), &made) == nil && made.Value.ResourceID != nil {
			l.annotate(made.Value.ResourceID.Value, asked.Annotation)
		}
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(recorder.Body.Bytes())
	})
}

func (l *Lab) annotate(machine, notes string) {
	reference := types.ManagedObjectReference{Type: "VirtualMachine", Value: machine}
	if vm, ok := l.Context.Map.Get(reference).(*simulator.VirtualMachine); ok && notes != "" {
		ctx := l.Context
		ctx.Map.AtomicUpdate(ctx, vm, []types.PropertyChange{{Name: "config.annotation", Val: notes}})
	}
}
