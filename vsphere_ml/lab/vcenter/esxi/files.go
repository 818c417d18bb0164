package esxi

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path"
	"sort"
	"strings"
	"sync"
	"time"
)

// files are what a session wrote, in memory; they end with it.
type files struct {
	mu      sync.Mutex
	content map[string]*bytes.Buffer
	folders map[string]bool
}

// most is how much a session may write.
const most = 16 << 20

func newFiles() *files {
	return &files{content: map[string]*bytes.Buffer{}, folders: map[string]bool{
		"/": true, "/bin": true, "/sbin": true, "/etc": true, "/opt": true, "/tmp": true, "/var": true, "/var/tmp": true, "/vmfs": true, "/dev": true,
	}}
}

func (f *files) open(name string, flag int) (io.ReadWriteCloser, error) {
	if name == "/dev/null" {
		return &null{}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	buffer, ok := f.content[name]
	switch {
	case f.folders[name]:
		return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrInvalid}
	case !ok && flag&os.O_CREATE == 0, !f.folders[path.Dir(name)]:
		return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
	case !ok || flag&os.O_TRUNC != 0:
		buffer = &bytes.Buffer{}
		f.content[name] = buffer
	}
	if flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return &reading{bytes.NewReader(bytes.Clone(buffer.Bytes()))}, nil
	}
	return &writing{f, buffer}, nil
}

// read is a file's content.
func (f *files) read(name string) ([]byte, error) {
	file, err := f.open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(file)
}

func (f *files) makeFolder(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.folders[path.Dir(name)] || f.folders[name] {
		return false
	}
	f.folders[name] = true
	return true
}

// remove forgets the file or folder and everything in it.
func (f *files) remove(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	inside := func(other string) bool { return other == name || strings.HasPrefix(other, name+"/") }
	for other := range f.content {
		if inside(other) {
			delete(f.content, other)
		}
	}
	for other := range f.folders {
		if inside(other) && other != "/" {
			delete(f.folders, other)
		}
	}
}

// list is what a folder holds, and whether there is such a folder.
func (f *files) list(host Host, folder string) ([]string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	held := map[string]bool{}
	add := func(name string) {
		if path.Dir(name) == folder && name != "/" {
			held[path.Base(name)] = true
		}
	}
	for name := range f.content {
		add(name)
	}
	for name := range f.folders {
		add(name)
	}
	for name := range programs {
		add(name)
	}
	known := f.folders[folder]
	if firmwareToolsVersion(host) != "" {
		add("/opt/mellanox")
		add(mellanox)
		known = known || folder == mellanox || folder == path.Dir(mellanox)
		for name := range firmwareTools {
			add(mellanox + "/" + name)
		}
	}
	var names []string
	for name := range held {
		names = append(names, name)
	}
	sort.Strings(names)
	return names, known
}

// stat finds files, folders and programs.
func (f *files) stat(host Host, name string) (fs.FileInfo, error) {
	if run, _ := find(host, name); run != nil && path.IsAbs(name) {
		return info{name: path.Base(name), mode: 0o755}, nil
	}
	if _, ok := f.list(host, name); ok {
		return info{name: path.Base(name), mode: fs.ModeDir | 0o755}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if buffer, ok := f.content[name]; ok {
		return info{name: path.Base(name), mode: 0o644, size: int64(buffer.Len())}, nil
	}
	return nil, &os.PathError{Op: "stat", Path: name, Err: os.ErrNotExist}
}

type info struct {
	name string
	mode fs.FileMode
	size int64
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }

type null struct{}

func (*null) Read([]byte) (int, error)       { return 0, io.EOF }
func (*null) Write(text []byte) (int, error) { return len(text), nil }
func (*null) Close() error                   { return nil }

type reading struct{ *bytes.Reader }

func (*reading) Write([]byte) (int, error) { return 0, os.ErrPermission }
func (*reading) Close() error              { return nil }

type writing struct {
	files  *files
	buffer *bytes.Buffer
}

func (w *writing) Write(text []byte) (int, error) {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	if w.buffer.Len()+len(text) > most {
		return 0, os.ErrInvalid
	}
	return w.buffer.Write(text)
}
func (*writing) Read([]byte) (int, error) { return 0, os.ErrPermission }
func (*writing) Close() error             { return nil }
