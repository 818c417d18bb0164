# One VM's hardware: adapters, and a guest that is booted again when it asks for that. Pid 1 of the VM's own namespace.
# Arguments: the VM's folder, its disk, the hub's pid; then MAC and bridge of each adapter.
set -eu
at=$1 disk=$2 hub=$3
shift 3
number=0
while [ $# -gt 0 ]; do
    port="$(basename "$at")-$number"
    # The kernel takes away an ended VM's adapters when it finds the time.
    nsenter --net="/proc/$hub/ns/net" ip link delete "$port" 2>/dev/null || :
    ip link add "eth$number" address "$1" mtu 1500 type veth peer name "$port" netns "/proc/$hub/ns/net"
    nsenter --net="/proc/$hub/ns/net" ip link set "$port" master "$2" mtu 9000 up
    number=$((number + 1))
    shift 2
done
read -r pid _ </proc/self/stat
echo "$pid" >"$at/machine.pid.new"
mv "$at/machine.pid.new" "$at/machine.pid"
again=85
while [ $again -eq 85 ]; do
    rm -f "$at/tools/booted"
    cat /proc/sys/kernel/random/uuid >"$at/boot_id"
    unshare --mount --pid --fork --kill-child sh "$at/init.sh" "$at" "$disk" && again=0 || again=$?
done
