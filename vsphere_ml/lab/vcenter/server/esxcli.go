package server

import (
	"encoding/xml"
	"errors"
	"reflect"
	"strings"

	command "github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	vimxml "github.com/vmware/govmomi/vim25/xml"

	"vsml.dev/lab/vcenter/esxi"
)

// esxcliResult is the answer to ExecuteSoap. govmomi keeps the API's own types in an internal package.
type esxcliResult struct {
	types.DynamicData

	Response string       `xml:"response,omitempty"`
	Fault    *esxcliFault `xml:"fault,omitempty"`
}

type esxcliFault struct {
	types.DynamicData

	FaultMsg    string `xml:"faultMsg"`
	FaultDetail string `xml:"faultDetail,omitempty"`
}

type esxcliResponse struct {
	Returnval *esxcliResult `xml:"urn:vim25 returnval"`
}

type esxcliBody struct {
	Res    *esxcliResponse `xml:"urn:vim25 ExecuteSoapResponse"`
	Fault_ *soap.Fault
}

// Fault is nil: errors of a command come in its result.
func (b *esxcliBody) Fault() *soap.Fault { return b.Fault_ }

// esxcliError is an error of a command, as it stands in result.fault.
type esxcliError struct{ message string }

// esxcliCommand is one command of the lab's own; the simulator answers the others.
type esxcliCommand struct {
	group    string // vim.EsxCLI. and the words before the last
	name     string
	help     string
	param    []command.CommandInfoParam
	kind     string   // of the objects it lists; "" when it answers true
	shown    []string // titles of the fields, as the shell prints them; a field is its title without spaces
	how      esxi.Layout
	optional bool // options may be left out of a command that sets something
	run      func(*Lab, *simulator.Context, *esx, command.Values) ([]command.Values, *esxcliError)
}

// ExecuteSoap runs an esxcli command. Its parameter is of a type that only govmomi can name, so it is read by
// reflection.
func (e *executer) ExecuteSoap(ctx *simulator.Context, request any) soap.HasFault {
	fields := reflect.ValueOf(request).Elem()
	machine := e.lab.site.byReference[types.ManagedObjectReference{Type: "HostSystem", Value: e.Self().Value}]
	method := fields.FieldByName("Method").String()
	own, ok := commandOf(method)
	if !ok || machine == nil {
		return e.simulated(ctx, request)
	}
	values, failure := own.run(e.lab, ctx, machine, arguments(fields.FieldByName("Argument")))
	return &esxcliBody{Res: &esxcliResponse{Returnval: own.result(method, values, failure)}}
}

// Self is the executer's reference, whose value is the host's.
func (e *executer) Self() types.ManagedObjectReference { return e.ManagedMethodExecuter.Reference() }

func (e *executer) simulated(ctx *simulator.Context, request any) soap.HasFault {
	method := reflect.ValueOf(e.ManagedMethodExecuter).MethodByName("ExecuteSoap")
	return method.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(request)})[0].Interface().(soap.HasFault)
}

// arguments come as <option xmlns="urn:vim25">atsSupport</option>.
func arguments(list reflect.Value) command.Values {
	values := command.Values{}
	for i := range list.Len() {
		var text struct {
			Value string `xml:",chardata"`
		}
		if xml.Unmarshal([]byte(list.Index(i).FieldByName("Val").String()), &text) == nil {
			values[list.Index(i).FieldByName("Name").String()] = []string{text.Value}
		}
	}
	return values
}

func commandOf(method string) (esxcliCommand, bool) {
	for _, own := range esxcliCommands {
		if strings.EqualFold(method, "vim.EsxCLI."+own.group+"."+own.name) {
			return own, true
		}
	}
	return esxcliCommand{}, false
}

// forShell is the command as the host's own shell runs it.
func (c esxcliCommand) forShell(h hostShell) esxi.Command {
	command := esxi.Command{
		Namespace: strings.ReplaceAll(c.group, ".", " "), Name: c.name, Help: c.help, Titles: c.shown, Layout: c.how,
		Run: func(given map[string]string) ([]esxi.Row, error) {
			arguments := values()
			for name, value := range given {
				arguments[name] = []string{value}
			}
			rows, failure := c.run(h.lab, &simulator.Context{Map: h.lab.Context.Map}, h.esx, arguments)
			if failure != nil {
				return nil, errors.New(failure.message)
			}
			return shellRows(rows), nil
		},
	}
	for _, one := range c.param {
		command.Options = append(command.Options, esxi.Option{
			Short: strings.TrimPrefix(one.Aliases[0], "-"), Long: one.Name, Help: one.Help, Required: c.kind == "" && !c.optional,
		})
	}
	return command
}

func shellRows(rows []command.Values) []esxi.Row {
	var shown []esxi.Row
	for _, row := range rows {
		one := esxi.Row{}
		for name := range row {
			one[name] = row.Value(name)
		}
		shown = append(shown, one)
	}
	return shown
}

func (c esxcliCommand) result(method string, values []command.Values, failure *esxcliError) *esxcliResult {
	if failure != nil {
		return &esxcliResult{Fault: failure.fault()}
	}
	response := command.Response{Kind: strings.ReplaceAll("Vim"+strings.TrimPrefix(method, "vim"), ".", "") + c.kind, Values: values}
	if c.kind == "" {
		response = command.Response{Kind: "boolean", String: "true"}
	}
	var out strings.Builder
	if err := vimxml.NewEncoder(&out).Encode(&response); err != nil {
		return &esxcliResult{Fault: (&esxcliError{err.Error()}).fault()}
	}
	return &esxcliResult{Response: out.String()}
}

// fault is an error as ESXi writes it: the sentence is in the detail's errMsg.
func (e *esxcliError) fault() *esxcliFault {
	var message strings.Builder
	_ = xml.EscapeText(&message, []byte(e.message))
	return &esxcliFault{
		FaultMsg: "EsxCLI.CLIFault.summary",
		FaultDetail: `<obj xmlns="urn:vim25" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="LocalizedMethodFault">` +
			`<fault xsi:type="VimEsxCLICLIFault"><errMsg>` + message.String() + `</errMsg></fault>` +
			`<localizedMessage>EsxCLI.CLIFault.summary</localizedMessage></obj>`,
	}
}
