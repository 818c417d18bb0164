package server

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"vsml.dev/lab/vcenter/topology"
)

// services is the host's service system.
func (r *rig) services(host *object.HostSystem) types.ManagedObjectReference {
	r.Helper()
	var properties mo.HostSystem
	if err := host.Properties(r.ctx, host.Reference(), []string{"configManager"}, &properties); err != nil {
		r.Fatal(err)
	}
	return *properties.ConfigManager.ServiceSystem
}

func (r *rig) startSSH(host *object.HostSystem) {
	r.Helper()
	if _, err := methods.StartService(r.ctx, r.client, &types.StartService{This: r.services(host), Id: serviceSSH}); err != nil {
		r.Fatal(err)
	}
}

// dial signs in to the host's shell as root, by password or by the lab's key, and checks the host's key.
func (r *rig) dial(name string, method ssh.AuthMethod) (*ssh.Client, error) {
	r.Helper()
	state := r.lab.options.StateDir
	verify, err := knownhosts.New(filepath.Join(state, knownHosts))
	if err != nil {
		r.Fatal(err)
	}
	if method == nil {
		text, _ := os.ReadFile(filepath.Join(state, esxiKey))
		signer, err := ssh.ParsePrivateKey(text)
		if err != nil {
			r.Fatal(err)
		}
		method = ssh.PublicKeys(signer)
	}
	shell := r.lab.Shell(name)
	return ssh.Dial("tcp", net.JoinHostPort(shell.Address, strconv.Itoa(shell.Port)), &ssh.ClientConfig{
		User: "root", Auth: []ssh.AuthMethod{method}, HostKeyCallback: verify, Timeout: 2 * time.Minute,
	})
}

// types runs a command on the host and returns its standard output and exit status.
func (r *rig) types(name, line string) (string, int) {
	r.Helper()
	client, err := r.dial(name, nil)
	if err != nil {
		r.Fatal(err)
	}
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		r.Fatal(err)
	}
	out, err := session.Output(line)
	if err == nil {
		return string(out), 0
	}
	ended, ok := err.(*ssh.ExitError)
	if !ok {
		r.Fatalf("%s: %v", line, err)
	}
	return string(out), ended.ExitStatus()
}

func withTools(file *topology.File) { file.Models[0].MFT = "4.22.1.307" }

func TestSSHIsStoppedUntilItsServiceRuns(t *testing.T) {
	r := newRig(t, "quad-8.0u3", withTools)
	host := r.host("esx-01.lab.test")
	if _, err := r.dial("esx-01.lab.test", nil); err == nil {
		t.Fatal("a stopped service answers")
	}
	r.startSSH(host)
	_, err := methods.StartService(r.ctx, r.client, &types.StartService{This: r.services(host), Id: serviceSSH})
	mustBe(t, faultOf(t, err), "InvalidState")
	_, err = methods.StartService(r.ctx, r.client, &types.StartService{This: r.services(host), Id: "no-such"})
	mustBe(t, faultOf(t, err), "NotFound")
	if out, status := r.types("esx-01.lab.test", "hostname"); out != "esx-01.lab.test\n" || status != 0 {
		t.Errorf("hostname: %q, %d", out, status)
	}
	if _, err := r.dial("esx-02.lab.test", nil); err == nil {
		t.Error("another host's service runs too")
	}
	if _, err := methods.StopService(r.ctx, r.client, &types.StopService{This: r.services(host), Id: serviceSSH}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.dial("esx-01.lab.test", nil); err == nil {
		t.Error("the service was stopped and answers")
	}
}

func TestOnlyRootSignsInByPasswordOrKey(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	r.startSSH(r.host("esx-01.lab.test"))
	password, _ := os.ReadFile(filepath.Join(r.lab.options.StateDir, esxiPassword))
	client, err := r.dial("esx-01.lab.test", ssh.Password(strings.TrimSpace(string(password))))
	if err != nil {
		t.Fatal(err)
	}
	_ = client.Close()
	if _, err := r.dial("esx-01.lab.test", ssh.Password("guessed")); err == nil {
		t.Error("a wrong password was taken")
	}
}

func TestServiceStartsWithTheHostOnlyWhenItsPolicySaysSo(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	host := r.host("esx-01.lab.test")
	r.startSSH(host)
	if fault := r.done(host.EnterMaintenanceMode(r.ctx, 0, false, nil)); fault != nil {
		t.Fatalf("%T", fault)
	}
	r.rebooted(host)
	if _, err := r.dial("esx-01.lab.test", nil); err == nil {
		t.Error("a service of policy off runs after the boot")
	}
	_, err := methods.UpdateServicePolicy(r.ctx, r.client, &types.UpdateServicePolicy{This: r.services(host), Id: serviceSSH, Policy: "on"})
	if err != nil {
		t.Fatal(err)
	}
	r.rebooted(host)
	if out, _ := r.types("esx-01.lab.test", "esxcli system maintenanceMode get"); out != "Enabled\n" {
		t.Errorf("after the boot: %q", out)
	}
}

func TestFirmwareSettingCountsAfterTheReboot(t *testing.T) {
	r := newRig(t, "quad-8.0u3", withTools)
	const name, query = "esx-01.lab.test", "/opt/mellanox/bin/mlxconfig -e -d mt4125_pciconf0 query ATS_ENABLED | grep ATS_ENABLED"
	host := r.host(name)
	r.startSSH(host)
	if out, _ := r.types(name, query); strings.Join(strings.Fields(out), " ") != "ATS_ENABLED False(0) False(0) False(0)" {
		t.Fatalf("at first: %q", out)
	}
	if out, status := r.types(name, "/opt/mellanox/bin/mlxconfig -d mt4125_pciconf0 -y set ATS_ENABLED=true"); status != 0 || !strings.Contains(out, "Applying... Done!\n-I- Please reboot machine to load new configurations.") {
		t.Fatalf("set: %d, %q", status, out)
	}
	if out, _ := r.types(name, query); strings.Join(strings.Fields(out), " ") != "* ATS_ENABLED False(0) False(0) True(1)" {
		t.Errorf("before the reboot: %q", out)
	}
	if fault := r.done(host.EnterMaintenanceMode(r.ctx, 0, false, nil)); fault != nil {
		t.Fatalf("%T", fault)
	}
	r.rebooted(host)
	r.startSSH(host)
	if out, _ := r.types(name, query); strings.Join(strings.Fields(out), " ") != "* ATS_ENABLED False(0) True(1) True(1)" {
		t.Errorf("after the reboot: %q", out)
	}
	if out, _ := r.types(name, "/opt/mellanox/bin/mlxconfig -d mt4125_pciconf1 q | grep ATS"); strings.Fields(out)[1] != "False(0)" {
		t.Errorf("the other adapter: %q", out)
	}
}

// What each command line answers, and its exit status.
func TestShellAnswers(t *testing.T) {
	r := newRig(t, "quad-8.0u3", withTools)
	r.startSSH(r.host("esx-02.lab.test"))
	const mlxconfig = "/opt/mellanox/bin/mlxconfig -d mt4125_pciconf0 "
	for line, want := range map[string]struct {
		out    string
		status int
	}{
		"esxcli system settings kernel list -o atsSupport": {"Name        Type  Configured  Runtime  Default  Description\n" +
			"----------  ----  ----------  -------  -------  --------------------------------\n" +
			"atsSupport  Bool  TRUE        TRUE     TRUE     Enable Support for PCIe ATS.\n", 0},
		"esxcli --formatter=csv system settings kernel list -o atsSupport": {
			"Configured,Default,Description,Name,Runtime,Type,\nTRUE,TRUE,Enable Support for PCIe ATS.,atsSupport,TRUE,Bool,\n", 0},
		"esxcli system settings kernel set -s noSuch -v TRUE":                              {"", 1},
		"esxcli system settings kernel set -s atsSupport":                                  {"", 1},
		"esxcli system settings kernel set --setting=atsSupport --value TRUE && echo done": {"done\n", 0},
		"esxcli no such":           {"", 1},
		"esxcli graphics host get": {"   Default Graphics Type: SharedPassthru\n   Shared Passthru Assignment Policy: Performance\n", 0},
		"esxcli graphics host set --default-type SharedPassthru && echo done":  {"done\n", 0},
		"esxcli graphics host set --default-type Magic":                        {"", 1},
		"esxcli system maintenanceMode get":                                    {"Disabled\n", 0},
		"esxcli software vib list | grep -c mft":                               {"1\n", 0},
		"vmware -v":                                                            {"VMware ESXi 8.0.3 build-24022510\n", 0},
		"lspci | grep vmnic4":                                                  {"0000:3d:00.0 Network controller: Mellanox Technologies MT2892 Family [ConnectX-6 Dx] [vmnic4]\n", 0},
		"/opt/mellanox/bin/mst status":                                         {"MST devices:\n------------\nmt4125_pciconf0\nmt4125_pciconf1\n", 0},
		"mst status":                                                           {"", 127},
		"[ -x /opt/mellanox/bin/mst ]":                                         {"", 0},
		"[ -e /etc/passwd ]":                                                   {"", 1},
		"cat /etc/passwd":                                                      {"", 1},
		"/usr/bin/id":                                                          {"", 127},
		"x=a; for y in 1 2; do x=$x$y; done; echo $x":                          {"a12\n", 0},
		"printf 'read x; echo got $x\\nline\\necho last' | sh":                 {"got line\nlast\n", 0},
		"if true\nthen echo yes\nfi":                                           {"yes\n", 0},
		"f() { echo in f $1; return 2; }; f a || echo $?":                      {"in f a\n2\n", 0},
		"false\necho $?\ntrap 'echo never' EXIT\ntrue":                         {"1\n", 0},
		"cat <<E\nhere\nE":                                                     {"here\n", 0},
		"echo 'echo inner; exit 3' | sh":                                       {"inner\n", 3},
		"f=$(mktemp) && echo kept >$f && cat $f && rm -f $f && [ ! -e $f ]":    {"kept\n", 0},
		"command -v esxcli timeout >/dev/null; timeout 0.05 sleep 5":           {"", 143},
		mlxconfig + "-y set NO_SUCH=1 | tail -n 1":                             {"-E- The Device doesn't support NO_SUCH parameter\n", 0},
		mlxconfig + "-y set NO_SUCH=1 | grep NO_SUCH":                          {"-E- The Device doesn't support NO_SUCH parameter\n", 0},
		mlxconfig + "-y set NO_SUCH=1 >/dev/null":                              {"", 3},
		"echo n | " + mlxconfig + "set ATS_ENABLED=1 | grep -c aborted":        {"1\n", 0},
		"/opt/mellanox/bin/mlxconfig -d mt4125_pciconf9 q":                     {"-E- Failed to open the device\n", 3},
		"/opt/mellanox/bin/mlxconfig -d /dev/mt4125_pciconf0 q | grep Device:": {"Device:         mt4125_pciconf0\n", 0},
	} {
		if out, status := r.types("esx-02.lab.test", line); status != want.status || !sameTable(out, want.out) {
			t.Errorf("%s: %d\n%s\nwanted %d\n%s", line, status, out, want.status, want.out)
		}
	}
}

// sameTable compares but for the length of the dashes.
func sameTable(got, want string) bool {
	squeeze := func(text string) string {
		for strings.Contains(text, "---") {
			text = strings.ReplaceAll(text, "---", "--")
		}
		return text
	}
	return squeeze(got) == squeeze(want)
}

func TestAPersonAtATerminalIsPrompted(t *testing.T) {
	r := newRig(t, "quad-8.0u3", nil)
	r.startSSH(r.host(atsHost))
	client, err := r.dial(atsHost, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := session.RequestPty("xterm", 24, 80, nil); err != nil {
		t.Fatal(err)
	}
	var screen strings.Builder
	session.Stdin, session.Stdout = strings.NewReader("x=hostname\rhostname\rexit 3\r"), &screen
	if err := session.Shell(); err != nil {
		t.Fatal(err)
	}
	if ended, ok := session.Wait().(*ssh.ExitError); !ok || ended.ExitStatus() != 3 {
		t.Errorf("ended with %v", ended)
	}
	if !strings.Contains(screen.String(), "[root@esx-01:~] ") || !strings.Contains(screen.String(), "\r\nesx-01.lab.test\r\n") {
		t.Errorf("the screen shows %q", screen.String())
	}
}

func TestHostsFailOnDemand(t *testing.T) {
	r := newRig(t, "quad-8.0u3", withTools)
	const name, set = "esx-01.lab.test", "/opt/mellanox/bin/mlxconfig -d mt4125_pciconf0 -y set ATS_ENABLED=1"
	host := r.host(name)
	r.startSSH(host)
	fail := func(faults ...string) {
		if err := r.lab.Rack.Fail(name, faults); err != nil {
			t.Fatal(err)
		}
	}
	fail("firmware-refuses")
	if out, status := r.types(name, set); status == 0 || !strings.Contains(out, "Failed!\n-E- ") {
		t.Errorf("firmware that refuses: %d, %q", status, out)
	}
	fail("no-ats")
	if out, status := r.types(name, "/opt/mellanox/bin/mlxconfig -d mt4125_pciconf0 q | grep ATS"); status != 1 {
		t.Errorf("firmware without ATS: %d, %q", status, out)
	}
	if out, status := r.types(name, set); status == 0 || !strings.Contains(out, "doesn't support ATS_ENABLED") {
		t.Errorf("firmware without ATS: %d, %q", status, out)
	}
	fail("no-mft")
	if out, status := r.types(name, set); status != 127 {
		t.Errorf("no tools: %d, %q", status, out)
	}
	fail("ssh-refused")
	if _, err := r.dial(name, nil); err == nil {
		t.Error("SSH was not refused")
	}
	fail("kernel-ignores")
	if _, err := r.esxcli(host, "system", "settings", "kernel", "set", "-s", "atsSupport", "-v", "FALSE"); err != nil {
		t.Fatal(err)
	}
	if configured, _ := r.kernel(host, "atsSupport"); configured != "TRUE" {
		t.Error("the setting was kept")
	}
	fail("kernel-forgets", "firmware-forgets")
	if _, err := r.esxcli(host, "system", "settings", "kernel", "set", "-s", "atsSupport", "-v", "FALSE"); err != nil {
		t.Fatal(err)
	}
	if _, status := r.types(name, set); status != 0 {
		t.Errorf("set ends with %d", status)
	}
	if fault := r.done(host.EnterMaintenanceMode(r.ctx, 0, false, nil)); fault != nil {
		t.Fatalf("%T", fault)
	}
	r.rebooted(host)
	if configured, runtime := r.kernel(host, "atsSupport"); configured != "FALSE" || runtime != "TRUE" {
		t.Errorf("a setting that does not stick is %s/%s", configured, runtime)
	}
	r.startSSH(host)
	if out, _ := r.types(name, "/opt/mellanox/bin/mlxconfig -d mt4125_pciconf0 q | grep ATS"); !strings.Contains(out, "False(0)") {
		t.Errorf("firmware that forgets: %q", out)
	}
	if err := r.lab.Rack.Fail(name, []string{"no-such"}); err == nil {
		t.Error("a fault that does not exist was taken")
	}
}
