// RUN: inductile-opt %s | inductile-opt | filecheck %s

transform.sequence {
  %i, %j, %k = transform.match kernel "mm*" contains "arith.mulf" writes "y" nest 1 loops 3
  %a, %b, %c, %d = transform.tile %i, %j sizes [4, 64]
  %e, %f = transform.interchange %a, %b order [1, 0]
  %u = transform.unroll %e factor 4
  %v = transform.unroll_and_jam %f factor 2
  %w, %x = transform.inside %v nest 0 loops 2
  %y = transform.fuse %u, %w
  transform.vectorize %x lanes 16
  transform.parallelize %y grain 2
  transform.map %y by grid tile 4
  transform.pin %y
}

// CHECK: transform.sequence {
// CHECK-NEXT: %i, %j, %k = transform.match kernel "mm*" contains "arith.mulf" writes "y" nest 1 loops 3
// CHECK-NEXT: %a, %b, %c, %d = transform.tile %i, %j sizes [4, 64]
// CHECK-NEXT: %e, %f = transform.interchange %a, %b order [1, 0]
// CHECK-NEXT: %u = transform.unroll %e factor 4
// CHECK-NEXT: %v = transform.unroll_and_jam %f factor 2
// CHECK-NEXT: %w, %x = transform.inside %v nest 0 loops 2
// CHECK-NEXT: %y = transform.fuse %u, %w
// CHECK-NEXT: transform.vectorize %x lanes 16
// CHECK-NEXT: transform.parallelize %y grain 2
// CHECK-NEXT: transform.map %y by grid tile 4
// CHECK-NEXT: transform.pin %y
