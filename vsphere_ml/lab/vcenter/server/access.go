package server

import (
	"crypto/subtle"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

func escape(text string) string { return html.EscapeString(text) }

// passwordGiven tells whether the request carries the lab's user and password by HTTP Basic.
func (l *Lab) passwordGiven(r *http.Request) bool {
	username, password, ok := r.BasicAuth()
	return ok && strings.EqualFold(username, l.options.Username) &&
		subtle.ConstantTimeCompare([]byte(password), []byte(l.options.Password)) == 1
}

// members lets through who is logged in over SOAP or gives the password.
func (l *Lab) members(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie(soap.SessionCookieName)
		if !l.passwordGiven(r) && (err != nil || !l.sessionExists(strings.Trim(cookie.Value, `"`))) {
			refuse(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// onlyPasswords closes the simulator's other doors into the REST session: it takes any "SIGN" token unread.
func onlyPasswords(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Authorization"), "SIGN ") {
			refuse(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func refuse(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Basic realm="vsml lab"`)
	http.Error(w, "authentication required", http.StatusUnauthorized)
}

// apiSession is the session resource at its path since vSphere 7.0; it answers with the bare value.
func apiSession(rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner := r.Clone(r.Context())
		inner.URL.Path = "/rest/com/vmware/cis/session"
		recorder := httptest.NewRecorder()
		rest.ServeHTTP(recorder, inner)
		var reply struct {
			Value json.RawMessage `json:"value"`
		}
		if recorder.Code != http.StatusOK || json.Unmarshal(recorder.Body.Bytes(), &reply) != nil {
			w.WriteHeader(recorder.Code)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = w.Write(reply.Value)
	})
}

// sessions are the keys of everybody logged in over SOAP.
func (l *Lab) sessions() []string {
	manager := l.Context.Map.SessionManager()
	view, ok := l.Context.Session.Get(manager.Self).(*simulator.SessionManager)
	if !ok {
		return nil
	}
	keys := make([]string, 0, len(view.SessionList))
	for _, session := range view.SessionList {
		keys = append(keys, session.Key)
	}
	return keys
}

func (l *Lab) sessionExists(key string) bool {
	for _, known := range l.sessions() {
		if known == key {
			return true
		}
	}
	return false
}

// expireSessions ends every session, as an idle time-out would.
func (l *Lab) expireSessions() int {
	keys := l.sessions()
	manager := l.Context.Map.SessionManager()
	manager.TerminateSession(l.Context, &types.TerminateSession{SessionId: keys})
	return len(keys)
}

// nameFor is what fault rules match: the name of the VM to be made, else the object's own.
func (l *Lab) nameFor(ctx *simulator.Context, object mo.Reference, call *simulator.Method) func() string {
	return func() string {
		switch body := call.Body.(type) {
		case *types.CreateVM_Task:
			return body.Config.Name
		case *types.CloneVM_Task:
			return body.Name
		}
		entity, ok := object.(mo.Entity)
		if !ok {
			return ""
		}
		var name string
		ctx.WithLock(object, func() { name = entity.Entity().Name })
		return name
	}
}
