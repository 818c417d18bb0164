package server

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

const categories = "/rest/com/vmware/cis/tagging/category"

// plainTypes takes the prefix from the types of objects that a tag category is for. Terraform's provider writes
// urn:vim25:VirtualMachine and expects to read VirtualMachine, as it does from a vCenter; the simulator keeps what came.
func plainTypes(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, categories) && r.Body != nil {
			body, err := io.ReadAll(io.LimitReader(r.Body, mostRequestBytes))
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			body = bytes.ReplaceAll(body, []byte(`"urn:vim25:`), []byte(`"`))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		next.ServeHTTP(w, r)
	})
}
