module vsml.dev/lab/vcenter

go 1.25.0

require (
	github.com/BurntSushi/toml v1.6.0
	github.com/google/uuid v1.6.0
	github.com/vmware/govmomi v0.56.0
	golang.org/x/crypto v0.50.0
	golang.org/x/term v0.42.0
	mvdan.cc/sh/v3 v3.13.1
)

require (
	golang.org/x/sys v0.43.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
