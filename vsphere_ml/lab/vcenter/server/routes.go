package server

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"sync"

	"github.com/vmware/govmomi/pbm"
	"github.com/vmware/govmomi/simulator"
	vapi "github.com/vmware/govmomi/vapi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"
)

var serviceInstance = vim25.ServiceInstance

// routes is the whole server: SOAP, storage policies, REST, datastore files and the control endpoints.
func (l *Lab) routes() http.Handler {
	l.service.RegisterSDK(l.service.Context.Map, vim25.Path+"/vimService")
	l.service.RegisterSDK(l.policies())
	rest := l.rest()
	mux := http.NewServeMux()
	mux.Handle("/sdk", l.soap(l.service.ServeMux))
	mux.Handle("/sdk/vimService", l.soap(l.service.ServeMux))
	mux.HandleFunc("/sdk/vimServiceVersions.xml", l.service.ServiceVersions)
	mux.Handle(pbm.Path, l.soap(l.service.ServeMux))
	mux.Handle("/folder/", l.members(http.HandlerFunc(l.service.ServeDatastore)))
	mux.Handle("/nfc/", http.HandlerFunc(simulator.ServeNFC))
	mux.Handle("/rest/", rest)
	mux.Handle("/api/content/", rest)
	mux.Handle("/api/session", apiSession(rest))
	mux.HandleFunc("GET /api/esx/settings/clusters/{cluster}/software/compliance", l.imageCompliance(rest))
	mux.Handle("/lab/", l.control())
	return survive(mux)
}

// faultStrings fills the faultstring that the simulator leaves empty; vCenter never does.
type faultStrings struct {
	http.ResponseWriter
	failed  bool
	written bool
	ctx     *simulator.Context
}

func (f *faultStrings) WriteHeader(status int) {
	f.failed = status == http.StatusInternalServerError
	f.written = true
	f.ResponseWriter.WriteHeader(status)
}

var (
	// The simulator's terse strings: none at all, and its own for a refused log-in.
	terse       = regexp.MustCompile(`<faultstring>(?:Login failure)?</faultstring>`)
	ruleMessage = regexp.MustCompile(`<key>vsml\.lab\.rule</key><message>([^<]*)</message>`)
)

// Write gets a whole fault at once: Service.ServeSDK encodes it before it writes (govmomi 0.56.0).
func (f *faultStrings) Write(body []byte) (int, error) {
	if !f.failed {
		return f.ResponseWriter.Write(body)
	}
	filled := terse.ReplaceAllLiteral(body, []byte("<faultstring>"+sentenceIn(body)+"</faultstring>"))
	if _, err := f.ResponseWriter.Write(filled); err != nil {
		return 0, err
	}
	return len(body), nil
}

// sentenceIn is the fault's sentence, escaped for XML.
func sentenceIn(body []byte) string {
	if match := ruleMessage.FindSubmatch(body); match != nil {
		return string(match[1]) // still escaped as it came
	}
	return escape(sentence(faultIn(body)))
}

// faultIn is the fault that a SOAP body carries.
func faultIn(body []byte) types.BaseMethodFault {
	var content struct {
		Fault soap.Fault `xml:"http://schemas.xmlsoap.org/soap/envelope/ Fault"`
	}
	decoder := xml.NewDecoder(bytes.NewReader(body))
	decoder.TypeFunc = types.TypeFunc()
	if err := decoder.Decode(&soap.Envelope{Body: &content}); err != nil || content.Fault.VimFault() == nil {
		return &types.RuntimeFault{}
	}
	told := reflect.ValueOf(content.Fault.VimFault())
	pointer := reflect.New(told.Type())
	pointer.Elem().Set(told)
	if fault, ok := pointer.Interface().(types.BaseMethodFault); ok {
		return fault
	}
	return &types.RuntimeFault{}
}

func (f *faultStrings) answerPanic(reason string) {
	if f.written {
		return
	}
	f.Header().Set("Content-Type", "text/xml; charset=utf-8")
	f.WriteHeader(http.StatusInternalServerError)
	fmt.Fprintf(f.ResponseWriter, `<?xml version="1.0" encoding="UTF-8"?>
<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">`+
		`<soapenv:Body><soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring>A general system error occurred: %[1]s</faultstring>`+
		`<detail><SystemErrorFault xmlns="urn:vim25" xsi:type="SystemError"><reason>%[1]s</reason></SystemErrorFault></detail>`+
		`</soapenv:Fault></soapenv:Body></soapenv:Envelope>`, escape(reason))
}

// rest is the vSphere Automation API as far as the simulator has it: session, tags, content library.
func (l *Lab) rest() http.Handler {
	own := *l.service.Listen // by which the simulator signs in to this server, to deploy items
	own.User = url.UserPassword(l.options.Username, l.options.Password)
	patterns, handler := vapi.New(&own, l.service.Context.Map)
	for _, pattern := range patterns {
		l.service.Handle(pattern, handler) // Handle also tells the simulator where tags are kept
	}
	return onlyPasswords(plainTypes(l.deployments(l.templateItems(l.service.ServeMux))))
}

// calls counts the SOAP calls by method.
type calls struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *calls) add(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[method]++
}

func (c *calls) list() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	copied := make(map[string]int, len(c.counts))
	for method, count := range c.counts {
		copied[method] = count
	}
	return copied
}
