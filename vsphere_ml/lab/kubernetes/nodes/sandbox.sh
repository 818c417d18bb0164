# One pod's network and name. Pid 1 of the pod's own namespace; containers join it.
# Arguments: the pod's folder, the hub's pid, the host's name, its address, the name of its port of the bridge.
set -eu
at=$1 hub=$2 port=$5
hostname "$3"
# The kernel takes away an ended pod's adapter when it finds the time.
nsenter --net="/proc/$hub/ns/net" ip link delete "$port" 2>/dev/null || :
ip link add eth0 mtu 1500 type veth peer name "$port" netns "/proc/$hub/ns/net"
nsenter --net="/proc/$hub/ns/net" ip link set "$port" master management mtu 9000 up
ip link set lo up
ip address add "$4" dev eth0
ip link set eth0 up
echo "$3" >"$at/hostname"
: >"$at/hosts"
read -r pid _ </proc/self/stat
echo "$pid" >"$at/sandbox.new"
mv "$at/sandbox.new" "$at/sandbox.pid"
exec sleep infinity
