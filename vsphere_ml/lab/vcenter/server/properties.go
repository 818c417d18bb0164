package server

import (
	"bytes"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"
)

// A property is read under its object's lock, and the answer is sent after it. The simulator (govmomi 0.56.0) writes
// each object as XML for that, reads it back as a copy, and writes it again: half of what a provision of 64 VMs cost the
// lab. Here an object is written once, under its lock, as the answer that is sent. Requests of other kinds than clients
// make for a bulk read (all properties, one element of an array, several steps of traversal) are the simulator's.

// encodedObject is an ObjectContent, as XML.
type encodedObject struct {
	Content []byte `xml:",innerxml"`
}

type encodedPage struct {
	Token   string          `xml:"token,omitempty"`
	Objects []encodedObject `xml:"objects"`
}

// encodedResult is the answer of the methods that answer in pages.
type encodedResult struct {
	Returnval *encodedPage `xml:"returnval"`
}

// The bodies of the answers; what fails is the simulator's.
type (
	noFault   struct{}
	firstBody struct {
		noFault `xml:"-"`
		Res     *encodedResult `xml:"RetrievePropertiesExResponse"`
	}
	nextBody struct {
		noFault `xml:"-"`
		Res     *encodedResult `xml:"ContinueRetrievePropertiesExResponse"`
	}
	wholeBody struct {
		noFault `xml:"-"`
		Res     *encodedList `xml:"RetrievePropertiesResponse"`
	}
	encodedList struct {
		Returnval []encodedObject `xml:"returnval,omitempty"`
	}
)

// Fault is none.
func (noFault) Fault() *soap.Fault { return nil }

// waitingPages are the objects of further pages, by the token that asks for them.
var waitingPages sync.Map

type waitingPage struct {
	most    int32
	objects []encodedObject
}

// RetrievePropertiesEx answers a bulk read.
func (c *collector) RetrievePropertiesEx(ctx *simulator.Context, request *types.RetrievePropertiesEx) soap.HasFault {
	objects, ok := readBulk(ctx, request.SpecSet)
	if !ok {
		return c.PropertyCollector.RetrievePropertiesEx(ctx, request)
	}
	return &firstBody{Res: &encodedResult{page(objects, request.Options.MaxObjects)}}
}

// ContinueRetrievePropertiesEx answers with the next page.
func (c *collector) ContinueRetrievePropertiesEx(ctx *simulator.Context, request *types.ContinueRetrievePropertiesEx) soap.HasFault {
	left, ok := waitingPages.LoadAndDelete(request.Token)
	if !ok {
		return c.PropertyCollector.ContinueRetrievePropertiesEx(ctx, request)
	}
	waiting := left.(waitingPage)
	return &nextBody{Res: &encodedResult{page(waiting.objects, waiting.most)}}
}

// RetrieveProperties answers a bulk read without pages, as govmomi asks.
func (c *collector) RetrieveProperties(ctx *simulator.Context, request *types.RetrieveProperties) soap.HasFault {
	objects, ok := readBulk(ctx, request.SpecSet)
	if !ok {
		return c.PropertyCollector.RetrieveProperties(ctx, request)
	}
	return &wholeBody{Res: &encodedList{objects}}
}

func page(objects []encodedObject, most int32) *encodedPage {
	if most <= 0 || len(objects) <= int(most) {
		return &encodedPage{Objects: objects}
	}
	token := uuid.NewString()
	waitingPages.Store(token, waitingPage{most, objects[most:]})
	return &encodedPage{Token: token, Objects: objects[:most]}
}

// bulkRead is one reading of listed objects and of those in views.
type bulkRead struct {
	ctx     *simulator.Context
	wanted  []types.PropertySpec
	objects []encodedObject
	seen    map[types.ManagedObjectReference]bool
}

// readBulk reads what a request asks for, and is false for what the simulator has to answer.
func readBulk(ctx *simulator.Context, specs []types.PropertyFilterSpec) ([]encodedObject, bool) {
	// Within the process, where nobody has signed in by name, answers are passed on as they are, and not as XML.
	if ctx.Session == nil || ctx.Session.UserName == "" || len(specs) != 1 || !plainlyNamed(specs[0].PropSet) {
		return nil, false
	}
	read := &bulkRead{ctx: ctx, wanted: specs[0].PropSet, seen: map[types.ManagedObjectReference]bool{}}
	var inside []types.ManagedObjectReference
	for _, start := range specs[0].ObjectSet {
		found, ok := read.start(start)
		if !ok {
			return nil, false
		}
		inside = append(inside, found...)
	}
	for _, reference := range inside {
		ctx.WithLock(reference, func() { read.object(reference) })
	}
	return read.objects, true
}

// readPlainValues reads an object whose values are copied as they are given on, as those of a task are. It is false for
// others, of which the simulator makes copies by way of XML.
func readPlainValues(
	ctx *simulator.Context, wanted []types.PropertySpec, reference types.ManagedObjectReference,
) (values map[string]types.AnyType, plain bool) {
	if ctx.Session == nil || !plainlyNamed(wanted) {
		return nil, false
	}
	ctx.WithLock(reference, func() {
		if ctx.Session.Get(reference) == nil {
			return
		}
		values, plain = map[string]types.AnyType{}, true
		object := managedObject(ctx, reference)
		for _, each := range wanted {
			for _, name := range pathsOf(reference, object.Type(), each) {
				value, known := valueAt(object, name)
				if plain = plain && known && isPlain(value); value != nil {
					values[name] = value
				}
			}
		}
	})
	return values, plain
}

func pathsOf(reference types.ManagedObjectReference, kind reflect.Type, wanted types.PropertySpec) []string {
	if !isOf(reference, kind, wanted.Type) {
		return nil
	}
	return wanted.PathSet
}

// isPlain tells whether a value shares nothing with the object that it was read of.
func isPlain(value types.AnyType) bool {
	switch value.(type) {
	case nil, types.ManagedObjectReference, time.Time:
		return true
	}
	kind := reflect.TypeOf(value).Kind()
	return kind == reflect.String || kind == reflect.Bool || (kind >= reflect.Int && kind <= reflect.Float64)
}

// plainlyNamed tells whether all properties are asked for by plain paths.
func plainlyNamed(wanted []types.PropertySpec) bool {
	for _, each := range wanted {
		if each.All != nil && *each.All {
			return false
		}
		for _, name := range each.PathSet {
			if strings.Contains(name, "[") {
				return false
			}
		}
	}
	return true
}

// start reads a starting object, if it is wanted itself, and returns what its view holds.
func (b *bulkRead) start(start types.ObjectSpec) (inside []types.ManagedObjectReference, ok bool) {
	if len(start.SelectSet) > 1 {
		return nil, false
	}
	b.ctx.WithLock(start.Obj, func() {
		// An object that has gone is a fault or left out; both are the simulator's to say.
		if b.ctx.Session.Get(start.Obj) == nil {
			return
		}
		if inside, ok = b.follow(start); ok && (start.SelectSet == nil || start.Skip == nil || !*start.Skip) {
			b.object(start.Obj)
		}
	})
	return inside, ok
}

// follow returns what a start's one step leads to; it is false for longer ways.
func (b *bulkRead) follow(start types.ObjectSpec) ([]types.ManagedObjectReference, bool) {
	if len(start.SelectSet) == 0 {
		return nil, true
	}
	step, ok := start.SelectSet[0].(*types.TraversalSpec)
	if !ok || len(step.SelectSet) > 0 || (step.Skip != nil && *step.Skip) {
		return nil, false
	}
	value, _ := valueAt(managedObject(b.ctx, start.Obj), step.Path)
	held, ok := value.(*types.ArrayOfManagedObjectReference)
	if !ok {
		return nil, false
	}
	return held.ManagedObjectReference, true
}

// object adds an object with the properties that are wanted of its type.
func (b *bulkRead) object(reference types.ManagedObjectReference) {
	if b.seen[reference] || b.ctx.Session.Get(reference) == nil {
		return
	}
	b.seen[reference] = true
	value := managedObject(b.ctx, reference)
	content, match := types.ObjectContent{Obj: reference}, false
	for _, each := range b.wanted {
		if isOf(reference, value.Type(), each.Type) {
			match = true
			addProperties(&content, value, each.PathSet)
		}
	}
	if match {
		b.objects = append(b.objects, encode(content))
	}
}

// isOf tells whether an object is of a type or of one below it, such as ManagedEntity.
func isOf(reference types.ManagedObjectReference, kind reflect.Type, wanted string) bool {
	if wanted == reference.Type || wanted == kind.Name() {
		return true
	}
	field, ok := kind.FieldByName(wanted)
	return ok && field.Anonymous
}

func addProperties(content *types.ObjectContent, value reflect.Value, paths []string) {
	for _, name := range paths {
		if has(content, name) {
			continue
		}
		property, known := valueAt(value, name)
		switch {
		case !known:
			content.MissingSet = append(content.MissingSet, types.MissingProperty{
				Path:  name,
				Fault: types.LocalizedMethodFault{Fault: &types.InvalidProperty{Name: name}},
			})
		case property != nil:
			content.PropSet = append(content.PropSet, types.DynamicProperty{Name: name, Val: property})
		}
	}
}

// has tells whether a property was answered for already, as by another type that the object is of.
func has(content *types.ObjectContent, name string) bool {
	return slices.ContainsFunc(content.PropSet, func(each types.DynamicProperty) bool { return each.Name == name }) ||
		slices.ContainsFunc(content.MissingSet, func(each types.MissingProperty) bool { return each.Path == name })
}

// managedObject is an object of the API that the session can see; the lab's and the simulator's own types embed it.
func managedObject(ctx *simulator.Context, reference types.ManagedObjectReference) reflect.Value {
	object := ctx.Session.Get(reference)
	if inner, ok := object.(interface{ Get() mo.Reference }); ok {
		object = inner.Get()
	}
	value := reflect.Indirect(reflect.ValueOf(object))
	for path.Base(value.Type().PkgPath()) != "mo" {
		value = reflect.Indirect(value.Field(0))
	}
	return value
}

// valueAt is a property by its path, as an answer carries it: nil when it is unset, false when there is none.
func valueAt(value reflect.Value, name string) (property types.AnyType, known bool) {
	for part := range strings.SplitSeq(name, ".") {
		for value.Kind() == reflect.Interface || value.Kind() == reflect.Pointer {
			value = value.Elem()
		}
		if value.Kind() != reflect.Struct || part == "" {
			return nil, false
		}
		value = value.FieldByName(strings.ToUpper(part[:1]) + part[1:])
		if !value.IsValid() {
			return nil, false
		}
		if isUnset(value) {
			return nil, true
		}
	}
	return asAnswer(reflect.Indirect(value)), true
}

func isUnset(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		return value.IsNil()
	case reflect.String:
		return value.Len() == 0
	default:
		return false
	}
}

// asAnswer gives an array the type that stands for it in an answer.
func asAnswer(value reflect.Value) types.AnyType {
	if value.Kind() != reflect.Slice {
		return value.Interface()
	}
	name := arrayName(value.Type().Elem())
	kind, _ := types.TypeFunc()("ArrayOf" + name)
	array := reflect.New(kind)
	elements := array.Elem().FieldByName(name)
	elements.Set(value.Convert(elements.Type()))
	return array.Interface()
}

var arrayNames = map[reflect.Kind]string{
	reflect.Uint8: "Byte", reflect.Int16: "Short", reflect.Int32: "Int", reflect.Int64: "Long",
}

// arrayName is what the API calls an element: govmomi has `Base` before the names of types that others derive from.
func arrayName(element reflect.Type) string {
	if name, ok := arrayNames[element.Kind()]; ok {
		return name
	}
	if element.Kind() == reflect.String && element.Name() == "string" {
		return "String"
	}
	return strings.TrimPrefix(element.Name(), "Base")
}

// encode writes an object as an answer does, without the element that it stands in.
func encode(content types.ObjectContent) encodedObject {
	text, err := xml.Marshal(&content)
	if err != nil {
		panic(err) // as the simulator does: a value of the lab's that XML cannot carry
	}
	inner := text[bytes.IndexByte(text, '>')+1 : bytes.LastIndexByte(text, '<')]
	return encodedObject{inner}
}
