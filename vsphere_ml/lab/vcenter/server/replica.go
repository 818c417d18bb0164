package server

import "reflect"

// replica is a copy that shares nothing with its original that can be written. The simulator's own way, by XML, takes
// longer than all the rest of a clone (govmomi 0.56.0).
func replica[T any](original T) T {
	target := reflect.New(reflect.TypeFor[T]()).Elem()
	replicate(target, reflect.ValueOf(&original).Elem())
	return target.Interface().(T)
}

func replicate(target, source reflect.Value) {
	target.Set(source) // unexported fields too, such as those of time.Time
	switch source.Kind() {
	case reflect.Pointer:
		if !source.IsNil() {
			target.Set(reflect.New(source.Type().Elem()))
			replicate(target.Elem(), source.Elem())
		}
	case reflect.Interface:
		if !source.IsNil() {
			inner := reflect.New(source.Elem().Type()).Elem()
			replicate(inner, source.Elem())
			target.Set(inner)
		}
	case reflect.Slice:
		if !source.IsNil() {
			target.Set(reflect.MakeSlice(source.Type(), source.Len(), source.Len()))
			for i := range source.Len() {
				replicate(target.Index(i), source.Index(i))
			}
		}
	case reflect.Struct:
		for i := range source.NumField() {
			if target.Field(i).CanSet() {
				replicate(target.Field(i), source.Field(i))
			}
		}
	}
}
