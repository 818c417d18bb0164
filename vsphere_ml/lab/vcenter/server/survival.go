package server

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"reflect"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// mostRequestBytes is far above every request of a client; without a limit one request could take all memory.
const mostRequestBytes = 64 << 20

// soap keeps a panic of the simulator from dropping the connection and gives every fault its sentence.
func (l *Lab) soap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := &faultStrings{ResponseWriter: w}
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(r.Body, mostRequestBytes), r.Body} // what is cut off is no XML and is refused as such
		defer func() {
			if reason := recover(); reason != nil {
				log.Printf("a SOAP call panicked: %v", reason)
				reply.unlock()
				reply.answerPanic(fmt.Sprint(reason))
			}
		}()
		next.ServeHTTP(reply, r)
	})
}

// survive answers 500 when a handler panics outside SOAP.
func survive(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if reason := recover(); reason != nil {
				log.Printf("%s %s panicked: %v", r.Method, r.URL.Path, reason)
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// guard lets a task of the simulator's that panics end with a fault. It runs on a goroutine of its own (govmomi
// 0.56.0), where a panic ends the process; newcomers sees every task before that begins.
func guard(task *simulator.Task) {
	work := task.Execute
	if work == nil {
		return
	}
	task.Execute = func(task *simulator.Task) (result types.AnyType, fault types.BaseMethodFault) {
		defer func() {
			if reason := recover(); reason != nil {
				log.Printf("%s panicked: %v", task.Info.Name, reason)
				result, fault = nil, &types.SystemError{Reason: fmt.Sprint(reason)}
			}
		}()
		return work(task)
	}
}

// unlock gives back what a call that panicked has locked; the simulator's WithLock does not, and the next call on
// the object would wait for ever. Once the call has returned there is nothing to give back.
func (f *faultStrings) unlock() {
	if f.ctx == nil || f.written {
		return
	}
	registry := f.ctx.Map
	guarding := private(registry, "m").Addr().Interface().(*sync.Mutex)
	guarding.Lock()
	defer guarding.Unlock()
	for _, lock := range private(registry, "locks").Seq2() {
		release(lock, f.ctx)
	}
}

// release gives back one lock, as often as the context holds it.
func release(lock reflect.Value, ctx *simulator.Context) {
	state := private(lock.Interface(), "stateLock").Addr().Interface().(*sync.Mutex)
	for {
		state.Lock()
		held := private(lock.Interface(), "heldBy").Interface() == any(ctx)
		state.Unlock()
		if !held {
			return
		}
		lock.MethodByName("Release").Call([]reflect.Value{reflect.ValueOf(ctx)})
	}
}

// replyOf is the lab's own writer under a call's context.
func replyOf(ctx *simulator.Context) *faultStrings {
	reply, _ := private(ctx, "res").Interface().(*faultStrings)
	return reply
}

// private is a field that govmomi 0.56.0 keeps to itself, of an object given by its pointer. Nothing public leads from
// a request to the locks it holds; TestAPanicLeavesNothingLocked says when a new govmomi has other fields.
func private(object any, field string) reflect.Value {
	value := reflect.ValueOf(object).Elem().FieldByName(field)
	return reflect.NewAt(value.Type(), value.Addr().UnsafePointer()).Elem()
}
