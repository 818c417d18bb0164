package topology

import (
	"strings"
	"testing"
)

func TestShippedTopologiesLoad(t *testing.T) {
	for name, hosts := range map[string]int{"quad-8.0u3": 4, "seed-7.0u2": 1, "mixed-ats": 5, "sixteen-7.0u2": 16, "spectrum-8.0u3": 2, "nine-9.0": 2} {
		file, err := Load("../../topologies/" + name + ".toml")
		if err != nil {
			t.Fatal(err)
		}
		if file.Name != name || len(file.Clusters[0].Hosts) != hosts {
			t.Errorf("%s: got name %q and hosts %v", name, file.Name, file.Clusters[0].Hosts)
		}
	}
}

const minimal = `
schema = 1
[datacenter]
name = "dc"
[[cluster]]
name = "c"
hosts = ["esx-[08-10].lab.test"]
model = "m"
[[model]]
name = "m"
esxi_version = "8.0.3"
cpu_vendor = "intel"
[[model.numa]]
id = 0
cores = 8
memory_gib = 64
[[datastore]]
name = "d"
capacity_gib = 10
`

func TestRangesKeepTheirWidth(t *testing.T) {
	file, err := Parse(minimal)
	if err != nil {
		t.Fatal(err)
	}
	want := "esx-08.lab.test esx-09.lab.test esx-10.lab.test"
	if got := strings.Join(file.Clusters[0].Hosts, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestVMsWithoutHostTakeTheHostsInTurn(t *testing.T) {
	file, err := Parse(minimal + "[[vm]]\nname = \"vm-[1-4]\"\ndatastore = \"d\"\n")
	if err != nil {
		t.Fatal(err)
	}
	var seats []string
	for _, machine := range file.VMs {
		seats = append(seats, machine.Name+"@"+machine.Host[:6])
	}
	if got := strings.Join(seats, " "); got != "vm-1@esx-08 vm-2@esx-09 vm-3@esx-10 vm-4@esx-08" {
		t.Errorf("got %s", got)
	}
}

func TestEveryProblemIsReportedAtOnce(t *testing.T) {
	_, err := Parse(strings.NewReplacer("schema = 1", "schema = 2\ncolour = 3", `model = "m"`, `model = "other"`,
		"esx-[08-10]", "esx-[10-08]").Replace(minimal) + `
[[model.gpu]]
address = "3B:00.0"
board = "A1000"
numa = 4
parent = "0000:00:01.0"
[[template]]
name = "t"
datastore = "nowhere"
portgroup = "nowhere"
[[vm]]
name = "v"
host = "esx-77"
datastore = "d"
power = "half"
profiles = ["grid_none"]
`)
	if err == nil {
		t.Fatal("the file was accepted")
	}
	for _, want := range []string{
		"unknown key colour", "schema is 2", `no [[model]] is named "other"`, "must rise", `PCI address "3B:00.0"`,
		`board "A1000" is unknown`, "NUMA node 4", "no [[model.bridge]]", `no [[datastore]] is named "nowhere"`,
		`no [[portgroup]] is named "nowhere"`, `no host is named "esx-77"`, `power is "half"`, `"grid_none" is unknown`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

func TestHostsDifferFromTheirCluster(t *testing.T) {
	const other = "[[model]]\nname = \"o\"\nesxi_version = \"7.0.2\"\ncpu_vendor = \"amd\"\n[[model.numa]]\nid = 0\ncores = 8\nmemory_gib = 64\n"
	file, err := Parse(minimal + other + "[[host]]\nname = \"esx-[09-10].lab.test\"\nmodel = \"o\"\nfaults = [\"no-return\"]\n")
	if err != nil {
		t.Fatal(err)
	}
	first, _ := file.HostModel(file.Clusters[0], "esx-08.lab.test")
	last, _ := file.HostModel(file.Clusters[0], "esx-10.lab.test")
	if own, _ := file.HostNamed("esx-10.lab.test"); first.Name != "m" || last.Name != "o" || own.Faults[0] != "no-return" {
		t.Errorf("models %s and %s, host %+v", first.Name, last.Name, own)
	}
	_, err = Parse(minimal + "[[host]]\nname = \"esx-08.lab.test\"\nmodel = \"none\"\nfaults = [\"none\"]\nreboot_ms = -1\n" +
		"[[host]]\nname = \"esx-08.lab.test\"\n[[host]]\nname = \"esx-99\"\n")
	for _, want := range []string{`no [[model]] is named "none"`, `fault is "none"`, "reboot_ms is -1", "described twice", `"esx-99": no cluster has it`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

func TestRangesThatAreNone(t *testing.T) {
	for _, pattern := range []string{"a[1-", "a[x-y]", "a[5-1]", "a[1-999999]", "[1-2][3-4]"} {
		if names, err := Expand(pattern); err == nil {
			t.Errorf("%s gave %d names", pattern, len(names))
		}
	}
}
