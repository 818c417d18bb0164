package server

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vsml.dev/lab/vcenter/topology"
)

func TestAHostListsItsVGPUManager(t *testing.T) {
	for name, want := range map[string]string{
		"quad-8.0u3": "NVD-AIE_ESXi_8.0.0_Driver 535.183.04-1OEM.800.1.0.20613240 NVD",
		"seed-7.0u2": "NVIDIA-AIE_ESXi_7.0.2_Driver 470.63-1OEM.702.0.0.17630552 NVIDIA",
	} {
		client := login(t, startLab(t, name))
		managers := hostProperties(t, client, "esx-01.lab.test", "configManager").ConfigManager
		reply, err := methods.FetchSoftwarePackages(within(t), client, &types.FetchSoftwarePackages{This: *managers.ImageConfigManager})
		if err != nil {
			t.Fatal(err)
		}
		found := reply.Returnval[1]
		if got := found.Name + " " + found.Version + " " + found.Vendor; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestAHostThatIsGoneListsNothing(t *testing.T) {
	lab := startLab(t, "quad-8.0u3")
	client := login(t, lab)
	managers := hostProperties(t, client, "esx-01.lab.test", "configManager").ConfigManager
	ask(t, lab, http.MethodPost, "/lab/hosts/esx-01.lab.test", map[string]string{"connection": "notResponding"}, nil)
	if _, err := methods.FetchSoftwarePackages(within(t), client, &types.FetchSoftwarePackages{This: *managers.ImageConfigManager}); err == nil {
		t.Error("a host that does not respond answered")
	}
}

func TestFilesOfTheTopologyLieOnTheDatastore(t *testing.T) {
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "drivers"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "drivers", "grid.run"), []byte("a driver"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, "quad-8.0u3", func(file *topology.File) { file.Datastores[1].Files = folder })
	for path, there := range map[string]bool{"drivers/grid.run": true, "drivers/none.run": false} {
		at, _ := url.Parse("https://" + r.lab.Address() + "/folder/" + path + "?dcPath=lab-dc&dsName=nfs-images")
		content, _, err := r.client.Download(r.ctx, at, &soap.DefaultDownload)
		if (err == nil) != there {
			t.Errorf("%s: %v", path, err)
		}
		if err == nil {
			content.Close()
		}
	}
}
