package server

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/vmware/govmomi/vim25/types"
)

// fetch reads one property as pyvmomi does, on the session's cookie.
func fetch(t *testing.T, lab *Lab, object types.ManagedObjectReference, property string) (int, string) {
	t.Helper()
	session := lab.sessions()[0]
	body := fmt.Sprintf(`<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body><Fetch xmlns="urn:vim25">`+
		`<_this type="%s">%s</_this><prop>%s</prop></Fetch></Body></Envelope>`, object.Type, object.Value, property)
	request, err := http.NewRequestWithContext(within(t), http.MethodPost, lab.URL(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.AddCookie(&http.Cookie{Name: "vmware_soap_session", Value: session})
	return sendText(t, lab, request)
}

func TestFetchOfAnUnsetPropertyIsAnEmptyFetchResponse(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	machine := machineNamed(t, login(t, lab), "etl-7").Reference()
	status, text := fetch(t, lab, machine, "snapshot")
	if status != http.StatusOK || !strings.Contains(text, "<FetchResponse") || strings.Contains(text, "returnval") {
		t.Errorf("status %d: %s", status, text)
	}
	status, text = fetch(t, lab, machine, "name")
	if status != http.StatusOK || !strings.Contains(text, "etl-7") {
		t.Errorf("status %d: %s", status, text)
	}
	status, text = fetch(t, lab, types.ManagedObjectReference{Type: "ManagedEntity", Value: "vm-999"}, "name")
	if status != http.StatusInternalServerError || !strings.Contains(text, "ManagedObjectNotFound") {
		t.Errorf("status %d: %s", status, text)
	}
}

// An empty enumeration is what pyvmomi cannot read.
func TestNoEnumerationIsEmpty(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	client := login(t, lab)
	machine := machineProperties(t, machineNamed(t, client, "etl-7"), "runtime", "summary")
	for _, runtime := range []types.VirtualMachineRuntimeInfo{machine.Runtime, machine.Summary.Runtime} {
		fields := reflect.ValueOf(runtime)
		for i := range fields.NumField() {
			field := fields.Type().Field(i)
			required := !strings.Contains(field.Tag.Get("xml"), "omitempty")
			if required && field.Type.Kind() == reflect.String && fields.Field(i).String() == "" {
				t.Errorf("%s is empty", field.Name)
			}
		}
		if runtime.FaultToleranceState == "" || runtime.RecordReplayState == "" {
			t.Errorf("fault tolerance %q, record and replay %q", runtime.FaultToleranceState, runtime.RecordReplayState)
		}
	}
}
