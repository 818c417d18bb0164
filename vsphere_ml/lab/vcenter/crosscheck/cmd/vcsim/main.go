// Command vcsim is govmomi's simulator with nothing laid over it, so that a client shows it does not depend on what
// the lab adds. It takes those flags of the released vcsim that the checks use, and prints the same line once it
// answers.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/vmware/govmomi/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "vcsim:", err)
		os.Exit(1)
	}
}

func run() error {
	model := simulator.VPX()
	defer model.Remove()
	listen := flag.String("l", "127.0.0.1:0", "address to listen on")
	version := flag.String("api-version", "8.0.3.0", "API version")
	username := flag.String("username", "", "user name to ask for; any when empty")
	password := flag.String("password", "", "password to ask for")
	certificate := flag.String("tlscert", "", "certificate file; the simulator's own when empty")
	key := flag.String("tlskey", "", "key file")
	flag.IntVar(&model.Cluster, "cluster", model.Cluster, "clusters")
	flag.IntVar(&model.ClusterHost, "host", model.ClusterHost, "hosts a cluster")
	flag.IntVar(&model.Host, "standalone-host", model.Host, "hosts outside clusters")
	flag.IntVar(&model.Machine, "vm", model.Machine, "VMs a pool")
	flag.IntVar(&model.Datastore, "ds", model.Datastore, "datastores")
	flag.Parse()

	model.ServiceContent.About.ApiVersion = *version
	if err := model.Create(); err != nil {
		return err
	}
	service := model.Service
	service.RegisterEndpoints = true
	service.Listen = &url.URL{Host: *listen}
	if *username != "" {
		service.Listen.User = url.UserPassword(*username, *password)
	}
	service.TLS = new(tls.Config)
	if *certificate != "" {
		pair, err := tls.LoadX509KeyPair(*certificate, *key)
		if err != nil {
			return err
		}
		service.TLS.Certificates = []tls.Certificate{pair}
	}
	server := service.NewServer()
	defer server.Close()
	fmt.Printf("export GOVC_URL=%s GOVC_SIM_PID=%d\n", server.URL, os.Getpid())
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
	return nil
}
