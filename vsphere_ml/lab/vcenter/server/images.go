package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"time"
)

// imageCompliance is vSphere Lifecycle Manager's last check of a cluster against its image. A cluster without one is not
// found. Source: the vSphere Automation API, ClusterCompliance of com.vmware.esx.settings; which error a cluster without an
// image gets is not known.
func (l *Lab) imageCompliance(rest http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		asked := r.Clone(r.Context())
		asked.URL.Path = "/rest/com/vmware/cis/session" // answers those who are signed in alone
		known := httptest.NewRecorder()
		rest.ServeHTTP(known, asked)
		if known.Code != http.StatusOK {
			refuse(w)
			return
		}
		l.answerImageCompliance(w, r)
	}
}

func (l *Lab) answerImageCompliance(w http.ResponseWriter, r *http.Request) {
	for _, described := range l.File.Clusters {
		if l.site.clusters[described.Name].Self.Value != r.PathValue("cluster") || !described.Image {
			continue
		}
		differ, alike := []string{}, []string{}
		for _, name := range described.Hosts {
			id := l.site.hosts[name].system.Self.Value
			if own, ok := l.File.HostNamed(name); ok && own.ImageDiffers {
				differ = append(differ, id)
			} else {
				alike = append(alike, id)
			}
		}
		status := "COMPLIANT"
		if len(differ) > 0 {
			status = "NON_COMPLIANT"
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"status": status, "non_compliant_hosts": differ, "compliant_hosts": alike, "incompatible_hosts": []string{},
			"unavailable_hosts": []string{}, "scan_time": l.Started.Format(time.RFC3339),
		})
		return
	}
	http.NotFound(w, r)
}
