package server

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

var (
	referenceType = reflect.TypeFor[types.ManagedObjectReference]()
	timeType      = reflect.TypeFor[time.Time]()
)

// checkArguments refuses a call that names an object which is not there, or a file or name that leads out of its
// datastore, before anything looks at it. The simulator takes an object that it finds for one of the type it expects,
// and panics; and it makes files wherever a path leads, on this machine.
func checkArguments(ctx *simulator.Context, call *simulator.Method) types.BaseMethodFault {
	// The property collector's own answer is right, and its requests name thousands of objects.
	if ctx.Session == nil || call.This.Type == "PropertyCollector" {
		return nil
	}
	request := reflect.ValueOf(call.Body).Elem()
	if name := missing(request); name != "" {
		return &types.InvalidArgument{InvalidProperty: name}
	}
	var fault types.BaseMethodFault
	walk("", request, func(name string, value reflect.Value) {
		switch {
		case fault != nil:
		case value.Kind() == reflect.String:
			fault = checkText(name, value.String())
		default:
			fault = checkReference(ctx, value.Interface().(types.ManagedObjectReference))
		}
	})
	return fault
}

func checkReference(ctx *simulator.Context, reference types.ManagedObjectReference) types.BaseMethodFault {
	if reference == (types.ManagedObjectReference{}) || ctx.Session.Get(reference) != nil {
		return nil
	}
	return &types.ManagedObjectNotFound{Obj: reference}
}

// checkText: names become names of files.
func checkText(field, text string) types.BaseMethodFault {
	var path object.DatastorePath
	switch {
	case strings.HasPrefix(text, "[") && path.FromString(text) && path.Path != "" && !filepath.IsLocal(path.Path):
		return &types.InvalidDatastorePath{DatastorePath: text}
	case (field == "Name" || field == "NewName") && slices.Contains(strings.Split(text, "/"), ".."):
		return &types.InvalidName{Name: text}
	}
	return nil
}

// missing is a required argument that names no object, or "".
func missing(request reflect.Value) string {
	for i := range request.NumField() {
		field := request.Type().Field(i)
		required := field.Type == referenceType && !strings.Contains(field.Tag.Get("xml"), "omitempty")
		if required && request.Field(i).IsZero() {
			name, _, _ := strings.Cut(field.Tag.Get("xml"), ",")
			return name
		}
	}
	return ""
}

// walk visits every reference and every text within the value, with the name of the field that holds it.
func walk(name string, value reflect.Value, visit func(string, reflect.Value)) {
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !value.IsNil() {
			walk(name, value.Elem(), visit)
		}
	case reflect.Slice:
		if value.Type().Elem().Kind() < reflect.Array {
			return // numbers
		}
		for i := range value.Len() {
			walk(name, value.Index(i), visit)
		}
	case reflect.Struct:
		walkStruct(name, value, visit)
	case reflect.String:
		visit(name, value)
	}
}

func walkStruct(name string, value reflect.Value, visit func(string, reflect.Value)) {
	switch value.Type() {
	case timeType:
	case referenceType:
		visit(name, value)
	default:
		for i := range value.NumField() {
			walk(value.Type().Field(i).Name, value.Field(i), visit)
		}
	}
}
