# order and pack alone.
. "$(dirname "$0")/common.inc"

cat >two.dag <<'END'
# two branches; the wide one first is better
in 10
wide 100 in
small 1 wide
other 50 in
sum 1 small other
END
expect 0 order --json two.dag
for part in '"nodes":5' '"peak_bytes":' '"given_peak_bytes":' '"lower_bound_bytes":' '"exact":' \
  '"ms":' '"order":['; do
  says out "$part"
done
expect 0 order two.dag
echo "a 1 b" >bad.dag
expect 2 order bad.dag
says err "bad.dag"
printf 'a 1 b\nb 1 a\n' >cycle.dag
expect 2 order cycle.dag
expect 2 order missing.dag

cat >buffers.csv <<'END'
id,lower,upper,size
a,0,2,64
b,1,3,64
c,2,4,64
END
expect 0 pack --json buffers.csv
for part in '"buffers":3' '"peak_bytes":128' '"lower_bound_bytes":128' '"exact":true' \
  '"feasible":true' '"us":' '"offsets":['; do
  says out "$part"
done
for algorithm in greedy peak_first portfolio exact; do
  expect 0 pack buffers.csv --algorithm $algorithm --capacity 128 -o placed.csv
  says placed.csv "offset"
done
rm placed.csv
expect 1 pack --json buffers.csv --capacity 127 -o placed.csv
says out '"feasible":false'
says out '"error"'
[ ! -e placed.csv ] || fail "an infeasible plan was written"
expect 2 pack buffers.csv --algorithm magic
expect 2 pack buffers.csv --capacity -1
echo "id,lower" >bad.csv
expect 2 pack bad.csv
expect 2 pack missing.csv
finish
