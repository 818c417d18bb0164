package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"vsml.dev/lab/vcenter/esxi"
)

const recordSchema = "vsml.site-record/1"

// Replay answers what a site record holds, by the requests that were recorded, and nothing else.
type Replay struct {
	options    Options
	apiVersion string
	hostPort   string
	http       *http.Server

	mu       sync.Mutex
	answers  map[string][][]byte // by the canonical request, in the order they were given
	given    map[string]int
	versions []byte

	printed map[string]map[string]esxi.Answer // by host or guest, and command
	shells  []*esxi.Server
}

// exchange is one file of a record.
type exchange struct {
	Method  string `xml:"method,attr"`
	Request struct {
		Content []byte `xml:",innerxml"`
	} `xml:"request"`
	Response struct {
		Content []byte `xml:",innerxml"`
	} `xml:"response"`
}

// RecordMistake says what is wrong with a record.
type RecordMistake struct{ error }

// StartReplay serves the record in a folder until Close.
func StartReplay(options Options, folder string) (*Replay, error) {
	replay := &Replay{options: options, answers: map[string][][]byte{}, given: map[string]int{}, printed: map[string]map[string]esxi.Answer{}}
	if err := replay.load(folder); err != nil {
		return nil, RecordMistake{err}
	}
	authority, err := loadAuthority(options.StateDir)
	if err != nil {
		return nil, err
	}
	certificate, err := authority.issue()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", options.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", options.Listen, err)
	}
	replay.hostPort = fmt.Sprintf("localhost:%d", listener.Addr().(*net.TCPAddr).Port)
	replay.http = &http.Server{
		Handler:           replay,
		ReadHeaderTimeout: 30 * time.Second,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{certificate},
		},
	}
	if err := replay.openShells(); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	go func() { _ = replay.http.ServeTLS(listener, "", "") }()
	return replay, nil
}

func (r *Replay) load(folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, "manifest.json"))
	if err != nil {
		return err
	}
	var manifest struct {
		Schema     string `json:"schema"`
		APIVersion string `json:"api_version"`
		Exchanges  []struct {
			File string `json:"file"`
			Kind string `json:"kind"`
		} `json:"exchanges"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return fmt.Errorf("manifest.json: %w", err)
	}
	if manifest.Schema != recordSchema {
		return fmt.Errorf("manifest.json: the schema is %q, not %q", manifest.Schema, recordSchema)
	}
	r.apiVersion = manifest.APIVersion
	for _, each := range manifest.Exchanges {
		add, known := map[string]func(string) error{"soap": r.add, "hosts": r.addCommand, "guests": r.addCommand}[each.Kind]
		if !known || !filepath.IsLocal(each.File) {
			continue
		}
		if err := add(filepath.Join(folder, each.File)); err != nil {
			return fmt.Errorf("%s: %w", each.File, err)
		}
	}
	if r.versions == nil {
		return errors.New("no exchange tells which versions of the API are served")
	}
	return nil
}

func (r *Replay) add(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var each exchange
	if err := xml.Unmarshal(text, &each); err != nil {
		return err
	}
	if each.Method == "vimServiceVersions" {
		r.versions = bytes.TrimSpace(each.Response.Content)
		return nil
	}
	key, err := canonical(each.Request.Content)
	if err != nil {
		return err
	}
	r.answers[key] = append(r.answers[key], bytes.TrimSpace(each.Response.Content))
	return nil
}

func (r *Replay) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	if strings.HasSuffix(request.URL.Path, "/vimServiceVersions.xml") {
		_, _ = w.Write(r.versions)
		return
	}
	body, err := io.ReadAll(io.LimitReader(request.Body, 64<<20))
	if err != nil {
		return
	}
	key, err := canonical(body)
	if err != nil {
		http.Error(w, "the request is no SOAP message", http.StatusBadRequest)
		return
	}
	answer, ok := r.next(key)
	if !ok {
		r.refuse(w, methodOf(key))
		return
	}
	if methodOf(key) == "Login" {
		http.SetCookie(w, &http.Cookie{Name: "vmware_soap_session", Value: "replay", Path: "/", Secure: true, HttpOnly: true})
	}
	if bytes.Contains(answer, []byte("<faultcode>")) {
		w.WriteHeader(http.StatusInternalServerError)
	}
	_, _ = w.Write(answer)
}

// next is the n-th answer to the n-th such request; the last one is given again.
func (r *Replay) next(key string) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	recorded := r.answers[key]
	if len(recorded) == 0 {
		return nil, false
	}
	at := min(r.given[key], len(recorded)-1)
	r.given[key]++
	return recorded[at], true
}

func (r *Replay) refuse(w http.ResponseWriter, method string) {
	w.WriteHeader(http.StatusInternalServerError)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?>
<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">`+
		`<soapenv:Body><soapenv:Fault><faultcode>ServerFaultCode</faultcode>`+
		`<faultstring>the site record has no answer to this %s</faultstring>`+
		`<detail><NotSupportedFault xmlns="urn:vim25" xsi:type="NotSupported"></NotSupportedFault></detail>`+
		`</soapenv:Fault></soapenv:Body></soapenv:Envelope>`, escape(method))
}

func methodOf(key string) string {
	method, _, _ := strings.Cut(key, "(")
	return method
}

// canonical is a request's body without prefixes, name spaces, versions and blanks. A sign-in is any sign-in: who it was
// is not in a record.
func canonical(message []byte) (string, error) {
	_, body, found := bytes.Cut(message, []byte("Body"))
	if !found {
		return "", errors.New("there is no SOAP body")
	}
	_, body, _ = bytes.Cut(body, []byte(">"))
	if end := bytes.LastIndex(body, []byte("Body")); end >= 0 {
		body = body[:bytes.LastIndexByte(body[:end], '<')]
	}
	key, err := flatten(body)
	if methodOf(key) == "Login" {
		return "Login(", err
	}
	return key, err
}

// element is one element of a request, its children as text.
type element struct {
	head     string // NAME(TYPE:
	text     string
	children []string
}

// Which objects and which properties are asked for is a set: a record's names sort otherwise than the site's did.
var sets = map[string]bool{"objectSet": true, "propSet": true, "pathSet": true}

// flatten is a row of elements as NAME(TYPE:TEXT); an element whose text is XML, as esxcli's arguments are, is flattened
// too.
func flatten(fragment []byte) (string, error) {
	decoder := xml.NewDecoder(bytes.NewReader(fragment))
	decoder.Strict = false // a fragment uses prefixes that are declared around it
	open := []*element{{}}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return strings.Join(open[0].children, ""), nil
		}
		if err != nil {
			return "", err
		}
		last := open[len(open)-1]
		switch each := token.(type) {
		case xml.StartElement:
			open = append(open, &element{head: each.Name.Local + "(" + kindOf(each)})
		case xml.CharData:
			last.text += string(each)
		case xml.EndElement:
			if len(open) == 1 {
				return "", errors.New("an element ends that did not begin")
			}
			open = open[:len(open)-1]
			above := open[len(open)-1]
			above.children = append(above.children, last.flat())
		}
	}
}

func (e *element) flat() string {
	if len(e.children) == 0 {
		value := strings.TrimSpace(e.text)
		if nested, err := flatten([]byte(value)); err == nil && strings.HasPrefix(value, "<") {
			value = nested
		}
		return e.head + value + ")"
	}
	slices.SortStableFunc(e.children, func(a, b string) int {
		if name, _, _ := strings.Cut(a, "("); sets[name] && strings.HasPrefix(b, name+"(") {
			return strings.Compare(a, b)
		}
		return 0
	})
	return e.head + strings.Join(e.children, "") + ")"
}

// kindOf is what an element says of its type: xsi:type, or the type of the object that is referred to.
func kindOf(element xml.StartElement) string {
	for _, each := range element.Attr {
		if each.Name.Local == "type" {
			_, after, found := strings.Cut(each.Value, ":")
			if found {
				return after + ":"
			}
			return each.Value + ":"
		}
	}
	return ""
}

// Address is host:port as the certificate names it.
func (r *Replay) Address() string { return r.hostPort }

// URL is the SOAP endpoint.
func (r *Replay) URL() string { return "https://" + r.hostPort + "/sdk" }

// CAFile is the certificate that clients must trust.
func (r *Replay) CAFile() string { return filepath.Join(r.options.StateDir, "ca.pem") }

// APIVersion is the version that was recorded.
func (r *Replay) APIVersion() string { return r.apiVersion }

// Close ends the server.
func (r *Replay) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	for _, shell := range r.shells {
		shell.Stop(true)
	}
	if r.http.Shutdown(ctx) != nil {
		_ = r.http.Close()
	}
	return nil
}
