package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const envelope = `<e:Envelope xmlns:e="urn:e" xmlns:xsi="urn:xsi"><e:Body>%</e:Body></e:Envelope>`

func inEnvelope(body string) []byte { return []byte(strings.Replace(envelope, "%", body, 1)) }

func TestRequestsAreEqualWhateverTheirPrefixesBlanksAndOrderOfObjects(t *testing.T) {
	first, err := canonical(inEnvelope(`<Fetch xmlns="urn:vim25"><specSet><objectSet><obj type="VirtualMachine">vm-2</obj></objectSet>` +
		`<objectSet><obj type="VirtualMachine">vm-1</obj></objectSet></specSet></Fetch>`))
	if err != nil {
		t.Fatal(err)
	}
	second, err := canonical(inEnvelope(`<v:Fetch><v:specSet>
		<v:objectSet><v:obj type="vim:VirtualMachine"> vm-1 </v:obj></v:objectSet>
		<v:objectSet><v:obj type="VirtualMachine" versionId="8.0">vm-2</v:obj></v:objectSet></v:specSet></v:Fetch>`))
	if err != nil || first != second {
		t.Errorf("got %s, %s, %v", first, second, err)
	}
}

func TestOtherObjectsOtherTextsAndOtherTypesAreOtherRequests(t *testing.T) {
	seen := map[string]string{}
	for _, body := range []string{
		`<A><obj type="VirtualMachine">vm-1</obj></A>`, `<A><obj type="VirtualMachine">vm-2</obj></A>`,
		`<A><obj type="HostSystem">vm-1</obj></A>`, `<B><obj type="VirtualMachine">vm-1</obj></B>`,
		`<A><x>1</x><x>2</x></A>`, `<A><x>2</x><x>1</x></A>`, `<A><x>&lt;a&gt;1&lt;/a&gt;</x></A>`,
	} {
		key, err := canonical(inEnvelope(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s are %s", body, other, key)
		}
		seen[key] = body
	}
}

func TestARecordWithAMistakeIsRefused(t *testing.T) {
	for name, manifest := range map[string]string{
		"no JSON":          `{`,
		"another schema":   `{"schema": "vsml.site-record/2"}`,
		"no versions":      `{"schema": "vsml.site-record/1"}`,
		"a file not there": `{"schema": "vsml.site-record/1", "exchanges": [{"file": "soap/1.xml", "kind": "soap"}]}`,
	} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "manifest.json"), []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := StartReplay(Options{StateDir: t.TempDir(), Listen: "127.0.0.1:0"}, folder); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
