package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vapi/library"
	"github.com/vmware/govmomi/vapi/vcenter"

	"vsml.dev/lab/vcenter/topology"
)

const (
	sessionHeader     = "vmware-api-session-id"
	sessionPath       = "/rest/com/vmware/cis/session"
	localLibraryPath  = "/rest/com/vmware/content/local-library"
	libraryItemPath   = "/rest/com/vmware/content/library/item"
	updateSessionPath = "/rest/com/vmware/content/library/item/update-session"
	updateFilePath    = "/rest/com/vmware/content/library/item/updatesession/file/id:"
	vmTemplatePath    = "/rest/vcenter/vm-template/library-items"
)

// vmTemplates are the VM templates behind library items, by the item's id. The simulator keeps them to itself, and
// answers a question for one with nothing (govmomi 0.56.0).
type vmTemplates struct {
	mu sync.Mutex
	of map[string]string
}

func (t *vmTemplates) add(item, machine string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[string]string{}
	}
	t.of[item] = machine
}

func (t *vmTemplates) get(item string) (machine string, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	machine, known = t.of[item]
	return machine, known
}

// templateItems notes which VM template each new item has, and tells it as vCenter does: by its managed object id.
func (l *Lab) templateItems(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch item, below := strings.CutPrefix(r.URL.Path, vmTemplatePath+"/"); {
		case r.URL.Path == vmTemplatePath && r.Method == http.MethodPost:
			l.noteTemplate(w, r, next)
		case below && r.Method == http.MethodGet:
			l.tellTemplate(w, r, next, item)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (l *Lab) noteTemplate(w http.ResponseWriter, r *http.Request, next http.Handler) {
	body, err := io.ReadAll(io.LimitReader(r.Body, mostRequestBytes))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	recorder := httptest.NewRecorder()
	next.ServeHTTP(recorder, r)
	var asked struct {
		Spec vcenter.Template `json:"spec"`
	}
	var made struct {
		Value string `json:"value"`
	}
	if json.Unmarshal(body, &asked) == nil && json.Unmarshal(recorder.Body.Bytes(), &made) == nil && recorder.Code == http.StatusOK {
		l.vmTemplates.add(made.Value, l.templateNamed(asked.Spec.Name))
	}
	w.WriteHeader(recorder.Code)
	_, _ = w.Write(recorder.Body.Bytes())
}

// templateNamed is the newest template of that name.
func (l *Lab) templateNamed(name string) (found string) {
	for _, each := range l.Context.Map.All("VirtualMachine") {
		machine, ok := each.(*simulator.VirtualMachine)
		if ok && machine.Name == name && machine.Config.Template {
			found = machine.Self.Value
		}
	}
	return found
}

func (l *Lab) tellTemplate(w http.ResponseWriter, r *http.Request, next http.Handler, item string) {
	recorder := httptest.NewRecorder()
	next.ServeHTTP(recorder, r) // who asks without a session, or for another kind of item, is refused there
	machine, known := l.vmTemplates.get(item)
	if recorder.Code != http.StatusOK || !known {
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(recorder.Body.Bytes())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]vcenter.TemplateInfo{"value": {VmTemplate: machine}})
}

// addLibraries makes the topology's content libraries, as an administrator would.
func (l *Lab) addLibraries() error {
	if len(l.File.Libraries) == 0 {
		return nil
	}
	key, err := l.restCall("", http.MethodPost, sessionPath, nil)
	if err != nil {
		return err
	}
	defer func() { _, _ = l.restCall(key, http.MethodDelete, sessionPath, nil) }()
	for _, described := range l.File.Libraries {
		if err := l.addLibrary(key, described); err != nil {
			return fmt.Errorf("library %q: %w", described.Name, err)
		}
	}
	return l.restoreFreeSpace()
}

func (l *Lab) addLibrary(key string, described topology.Library) error {
	store := l.site.datastores[described.Datastore].Self.Value
	id, err := l.restCall(key, http.MethodPost, localLibraryPath, map[string]any{"create_spec": library.Library{
		Name: described.Name, Type: "LOCAL", Storage: []library.StorageBacking{{DatastoreID: store, Type: "DATASTORE"}},
	}})
	if err != nil {
		return err
	}
	for _, item := range described.Items {
		if err := l.addItem(key, id, item); err != nil {
			return fmt.Errorf("item %q: %w", item.Name, err)
		}
	}
	return nil
}

func (l *Lab) addItem(key, into string, described topology.LibraryItem) error {
	if described.Template == "" {
		item, err := l.restCall(key, http.MethodPost, libraryItemPath, map[string]any{"create_spec": library.Item{
			Name: described.Name, LibraryID: into, Type: library.ItemTypeOVF,
		}})
		if err != nil || described.OVF == "" {
			return err
		}
		return l.addFile(key, item, described.OVF)
	}
	owner, _ := l.firstHost()
	_, err := l.restCall(key, http.MethodPost, vmTemplatePath, map[string]any{"spec": vcenter.Template{
		Name: described.Name, Library: into, SourceVM: l.templateNamed(described.Template),
		Placement: &vcenter.Placement{ResourcePool: owner.ResourcePool.Value, Folder: l.site.datacenter.VmFolder.Value},
	}})
	return err
}

// addFile uploads a file of this machine to an item, in an update session as a client does.
func (l *Lab) addFile(key, item, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	session, err := l.restCall(key, http.MethodPost, updateSessionPath, map[string]any{"create_spec": library.Session{LibraryItemID: item}})
	if err != nil {
		return err
	}
	name := filepath.Base(file)
	answer, err := l.rawCall(key, http.MethodPost, updateFilePath+session+"?~action=add", map[string]any{"file_spec": library.UpdateFile{
		Name: name, SourceType: "PUSH", Size: int64(len(content)),
	}})
	if err != nil {
		return err
	}
	var told struct {
		Value library.UpdateFile `json:"value"`
	}
	if err := json.Unmarshal(answer, &told); err != nil || told.Value.UploadEndpoint == nil {
		return fmt.Errorf("no address for %s: %s", name, answer)
	}
	to, err := url.Parse(told.Value.UploadEndpoint.URI)
	if err != nil {
		return err
	}
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodPut, to.Path, bytes.NewReader(content))
	request.Header.Set(sessionHeader, key)
	l.handler.ServeHTTP(recorder, request)
	if recorder.Code >= http.StatusBadRequest {
		return fmt.Errorf("uploading %s is answered with %d", name, recorder.Code)
	}
	_, err = l.restCall(key, http.MethodPost, updateSessionPath+"/id:"+session+"?~action=complete", nil)
	return err
}

// restCall asks this server's own REST API, and gives the id that it answers with.
func (l *Lab) restCall(key, method, path string, body any) (string, error) {
	answer, err := l.rawCall(key, method, path, body)
	var told struct {
		Value string `json:"value"`
	}
	_ = json.Unmarshal(answer, &told) // a deletion has no value
	return told.Value, err
}

func (l *Lab) rawCall(key, method, path string, body any) ([]byte, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request := httptest.NewRequest(method, path, bytes.NewReader(content))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(sessionHeader, key)
	if key == "" {
		request.SetBasicAuth(l.options.Username, l.options.Password)
	}
	recorder := httptest.NewRecorder()
	l.handler.ServeHTTP(recorder, request)
	if recorder.Code >= http.StatusBadRequest {
		return nil, fmt.Errorf("%s %s is answered with %d: %s", method, path, recorder.Code, recorder.Body)
	}
	return recorder.Body.Bytes(), nil
}
