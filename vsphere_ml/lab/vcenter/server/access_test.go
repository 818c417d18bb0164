package server

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

func TestPasswordIsEnforcedAndNeverShown(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	_, err := loginAs(t, lab, "wrong")
	if err == nil || !strings.Contains(err.Error(), "incorrect user name or password") {
		t.Errorf("a wrong password gave %v", err)
	}
	client := login(t, lab)
	if client.ServiceContent.About.ApiVersion != "8.0.3.0" {
		t.Errorf("API version %s", client.ServiceContent.About.ApiVersion)
	}
	if strings.Contains(lab.service.Listen.String(), "horse") {
		t.Error("the service's URL holds the password")
	}
}

func TestNobodyGetsInByToken(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	client, _ := loginAs(t, lab, "wrong")
	err := session.NewManager(client.Client).LoginExtensionByCertificate(within(t), "anybody")
	if err == nil {
		t.Error("log-in by certificate was accepted")
	}
	envelope := `<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Header><Security xmlns="urn:s"><Assertion><Subject>` +
		`<NameID>root</NameID></Subject></Assertion></Security></Header><Body><LoginByToken xmlns="urn:vim25">` +
		`<_this type="SessionManager">SessionManager</_this></LoginByToken></Body></Envelope>`
	request, _ := http.NewRequestWithContext(within(t), http.MethodPost, lab.URL(), strings.NewReader(envelope))
	if status := send(t, lab, request, nil); status != http.StatusInternalServerError {
		t.Errorf("log-in by token gave status %d", status)
	}
	if len(lab.sessions()) != 0 {
		t.Errorf("%d sessions are open", len(lab.sessions()))
	}
}

func TestRESTSessionNeedsThePassword(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	for _, path := range []string{"/rest/com/vmware/cis/session", "/api/session"} {
		for _, authorization := range []string{"", "SIGN token", "Basic d3Jvbmc6d3Jvbmc="} {
			request, _ := http.NewRequestWithContext(within(t), http.MethodPost, "https://"+lab.Address()+path, nil)
			request.Header.Set("Authorization", authorization)
			if status := send(t, lab, request, nil); status != http.StatusUnauthorized {
				t.Errorf("%s with %q gave status %d", path, authorization, status)
			}
		}
	}
	var id string
	if status := ask(t, lab, http.MethodPost, "/api/session", nil, &id); status != http.StatusCreated || id == "" {
		t.Errorf("with the password: status %d, id %q", status, id)
	}
}

func TestDatastoreFilesNeedASession(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	path := "https://" + lab.Address() + "/folder/etl-7/etl-7.vmx?dcPath=lab-dc&dsName=vsan"
	request, _ := http.NewRequestWithContext(within(t), http.MethodGet, path, nil)
	if status := send(t, lab, request, nil); status != http.StatusUnauthorized {
		t.Errorf("without a session: status %d", status)
	}
	if status := ask(t, lab, http.MethodGet, strings.TrimPrefix(path, "https://"+lab.Address()), nil, nil); status != http.StatusOK {
		t.Errorf("with the password: status %d", status)
	}
}

func TestMalformedSOAPIsAnsweredAndServedOn(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	for _, body := range []string{"", "<", "<a/>", `<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body></Body></Envelope>`,
		`<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body><VirtualMachineConfigSpec xmlns="urn:vim25"/></Body></Envelope>`,
		`<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body><Fetch xmlns="urn:vim25"><_this type="ManagedEntity">nobody</_this><prop>name</prop></Fetch></Body></Envelope>`,
	} {
		request, _ := http.NewRequestWithContext(within(t), http.MethodPost, lab.URL(), bytes.NewBufferString(body))
		if status := send(t, lab, request, nil); status != http.StatusInternalServerError {
			t.Errorf("%q gave status %d", body, status)
		}
	}
	login(t, lab)
}

func TestExpiredSessionsAreNotAuthenticated(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	client := login(t, lab)
	var reply map[string]int
	ask(t, lab, http.MethodPost, "/lab/sessions/expire", nil, &reply)
	if reply["expired"] != 1 {
		t.Errorf("got %v", reply)
	}
	_, err := methods.GetCurrentTime(within(t), client)
	if !isNotAuthenticated(err) {
		t.Errorf("after expiry: %v", err)
	}
	login(t, lab)
}

func isNotAuthenticated(err error) bool {
	if !soap.IsSoapFault(err) {
		return false
	}
	_, ok := soap.ToSoapFault(err).VimFault().(types.NotAuthenticated)
	return ok
}

func TestTheLabSaysThatItIsSimulated(t *testing.T) {
	for name, want := range map[string]string{
		"quad-8.0u3": "VMware vCenter Server 8.0.3 build-24022515 (vsml lab, simulated)",
		"seed-7.0u2": "VMware vCenter Server 7.0.2 build-17694817 (vsml lab, simulated)",
	} {
		about := login(t, startLab(t, name)).ServiceContent.About
		if about.FullName != want || about.Name != "VMware vCenter Server" {
			t.Errorf("%s calls itself %q, %q", name, about.Name, about.FullName)
		}
	}
}
