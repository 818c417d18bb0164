package server

import (
	"reflect"
	"strings"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

var (
	referenceType = reflect.TypeFor[types.ManagedObjectReference]()
	timeType      = reflect.TypeFor[time.Time]()
)

// checkReferences refuses a call that names an object which is not there, as vCenter does before it looks at anything
// else; the simulator takes what it finds for the type it expects, and panics.
func checkReferences(ctx *simulator.Context, call *simulator.Method) types.BaseMethodFault {
	// The property collector's own answer is right, and its requests name thousands of objects.
	if ctx.Session == nil || call.This.Type == "PropertyCollector" {
		return nil
	}
	request := reflect.ValueOf(call.Body).Elem()
	if name := missing(request); name != "" {
		return &types.InvalidArgument{InvalidProperty: name}
	}
	var fault types.BaseMethodFault
	eachReference(request, func(reference types.ManagedObjectReference) {
		if fault == nil && reference != call.This && ctx.Session.Get(reference) == nil {
			fault = &types.ManagedObjectNotFound{Obj: reference}
		}
	})
	return fault
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

// eachReference visits every reference within the value, those without a name aside.
func eachReference(value reflect.Value, visit func(types.ManagedObjectReference)) {
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !value.IsNil() {
			eachReference(value.Elem(), visit)
		}
	case reflect.Slice:
		if kind := value.Type().Elem().Kind(); kind == reflect.String || kind < reflect.Array {
			return
		}
		for i := range value.Len() {
			eachReference(value.Index(i), visit)
		}
	case reflect.Struct:
		inStruct(value, visit)
	}
}

func inStruct(value reflect.Value, visit func(types.ManagedObjectReference)) {
	switch value.Type() {
	case timeType:
	case referenceType:
		if !value.IsZero() {
			visit(value.Interface().(types.ManagedObjectReference))
		}
	default:
		for i := range value.NumField() {
			eachReference(value.Field(i), visit)
		}
	}
}
