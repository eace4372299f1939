// Functions of floats and bits that C and C++ read alike. Sections as in prelude.h.

//@ float_bits
static inline float float_of(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof(x));
  return x;
}
static inline uint32_t bits_of(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  return bits;
}

//@ bf16: float_bits
// bfloat16 in memory; rounding is to nearest even, a NaN becomes the quiet NaN 0x7fc0 as in torch.
static inline float from_bf16(uint16_t x) { return float_of((uint32_t)x << 16); }
static inline uint16_t to_bf16(float x) {
  const uint32_t u = bits_of(x);
  return x != x ? (uint16_t)0x7fc0 : (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
static inline float round_bf16(float x) { return from_bf16(to_bf16(x)); }

//@ cut_bf16: float_bits
// A float that is a number of bfloat16, in memory.
static inline uint16_t cut_bf16(float x) { return (uint16_t)(bits_of(x) >> 16); }

//@ f16: float_bits
// IEEE half precision in memory, rounded to nearest even.
static inline float from_f16(uint16_t x) {
  // Sign, exponent and mantissa moved into place: short of a factor 2^112, also for subnormal numbers. Infinities and
  // NaN have all exponent bits set instead.
  const uint32_t moved = ((uint32_t)(int32_t)(int16_t)x << 13) & 0x8fffe000u;
  const float finite = float_of(moved) * 0x1p112f;
  return (x & 0x7c00u) == 0x7c00u ? float_of(moved | 0x7f800000u) : finite;
}
static inline uint16_t to_f16(float x) {
  const uint32_t u = bits_of(x);
  const uint32_t magnitude = u & 0x7fffffffu;
  // Adding 2^(e+13) rounds a subnormal result at its last place; a normal one is rounded in integers.
  const uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const uint32_t finite = magnitude < 0x38800000u ? subnormal : normal < 0x7c00u ? normal : 0x7c00u;
  const uint32_t half = magnitude > 0x7f800000u ? 0x7e00u : magnitude == 0x7f800000u ? 0x7c00u : finite;
  return (uint16_t)(half | ((u >> 16) & 0x8000u));
}
static inline float round_f16(float x) { return from_f16(to_f16(x)); }

//@ f8e4m3fn: float_bits
// Floats of 8 bits with 4 of exponent, without infinities: what is too large becomes NaN.
static inline float from_f8e4m3fn(uint8_t x) {
  // As `from_f16`: short of a factor 2^120, also for subnormal numbers.
  const uint32_t moved = ((uint32_t)(int32_t)(int8_t)x << 20) & 0x87f00000u;
  const float finite = float_of(moved) * 0x1p120f;
  return (x & 0x7fu) == 0x7fu ? float_of(moved | 0x7fc00000u) : finite;
}
static inline uint8_t to_f8e4m3fn(float x) {
  const uint32_t u = bits_of(x);
  const uint32_t magnitude = u & 0x7fffffffu;
  const uint32_t subnormal = bits_of(float_of(magnitude) + 0x1p14f) - 0x46800000u;
  const uint32_t normal = (magnitude - 0x3c000000u + 0x7ffffu + ((magnitude >> 20) & 1u)) >> 20;
  const uint32_t finite = magnitude < 0x3c800000u ? subnormal : normal;
  const uint32_t byte = magnitude >= 0x43f00000u ? 0x7fu : finite;
  return (uint8_t)(byte | ((u >> 24) & 0x80u));
}
static inline float round_f8e4m3fn(float x) { return from_f8e4m3fn(to_f8e4m3fn(x)); }

//@ f8e5m2: f16
// The upper bytes of IEEE half precision.
static inline float from_f8e5m2(uint8_t x) { return from_f16((uint16_t)(x << 8)); }
static inline uint8_t to_f8e5m2(float x) {
  const uint32_t u = bits_of(x);
  const uint32_t magnitude = u & 0x7fffffffu;
  const uint32_t subnormal = bits_of(float_of(magnitude) + 0x1p7f) - 0x43000000u;
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffffu + ((magnitude >> 21) & 1u)) >> 21;
  const uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
  const uint32_t byte = magnitude > 0x7f800000u ? 0x7fu : magnitude >= 0x47800000u ? 0x7cu : finite;
  return (uint8_t)(byte | ((u >> 24) & 0x80u));
}
static inline float round_f8e5m2(float x) { return from_f8e5m2(to_f8e5m2(x)); }

//@ fma
// a*b + c in one rounding inside our own polynomials, where the machine has it; only speed depends on it.
#ifdef __FMA__
static inline float fma_fast(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
static inline float fma_fast(float a, float b, float c) { return a * b + c; }
#endif

//@ exp_f32: float_bits, fma
// exp within 1.1 units in the last place, by inline operations only, so that loops around it stay in registers. With
// x = n*log(2) + r, exp(r) = 1 + r + r*r*Q(r), where Q is a minimax fit made for this file. Adding 1.5*2^23 rounds to
// an integer, which then stands in the low bits, here with a bias. log(2) is split so that n times its first part is
// exact.
static inline float exp_reduced(float x, float n) {
  float r = fma_fast(n, -0x1.63p-1f, x);
  r = fma_fast(n, 0x1.bd0106p-13f, r);
  float q = 0x1.6a23ccp-10f;
  q = fma_fast(q, r, 0x1.123a20p-7f);
  q = fma_fast(q, r, 0x1.5558f2p-5f);
  q = fma_fast(q, r, 0x1.555492p-3f);
  q = fma_fast(q, r, 0x1.fffffcp-2f);
  return fma_fast(q, r * r, r) + 1.0f;
}
// For -87 <= x <= 88, where the result is a normal number.
static inline float exp_normal(float x) {
  const float magic = 0x1.8p23f + 127.0f, shifted = fma_fast(x, 0x1.715476p+0f, magic);
  return exp_reduced(x, shifted - magic) * float_of(bits_of(shifted) << 23);
}
// Any x: the scale 2^n is applied in two factors, each a normal number; what the magic number adds to the bits is zero in
// the lowest nine of either half, which alone reach a factor. Limits are set on the bits, as an integer minimum is one
// instruction: as signed numbers those of positive floats are in order, as unsigned ones those of negative floats, in
// reverse.
// Below -176, as at -inf behind a mask, n is -254 and both factors are 0: of a product that underflows, as from -104 on,
// some processors take more than a hundred cycles.
static inline float exp_f32(float x) {
  const int32_t bits = (int32_t)bits_of(x), below = bits < 0x42b20000 ? bits : 0x42b20000;  // 89
  const uint32_t within = (uint32_t)below < 0xc3300000u ? (uint32_t)below : 0xc3300000u;  // -176
  const float limited = float_of(within);
  const float magic = 0x1.8p23f + 254.0f, shifted = fma_fast(limited, 0x1.715476p+0f, magic);
  const uint32_t exponent = bits_of(shifted), half = exponent >> 1;
  const float scaled = exp_reduced(limited, shifted - magic) * float_of(half << 23);
  return x != x ? x : scaled * float_of((exponent - half) << 23);
}

//@ erf_f32: exp_f32
// erf within 1.3 units in the last place, without branches. Both polynomials are minimax fits made for this file:
// erf(x) = x + x*P(x*x) below 0.85, and erf(t) = 1 - exp(-t*Q(t)) up to 4, where it reaches 1.
static inline float erf_f32(float x) {
  const float magnitude = __builtin_fabsf(x), s = x * x;
  float p = -0x1.4afec8p-11f;
  p = fma_fast(p, s, 0x1.4b0216p-8f);
  p = fma_fast(p, s, -0x1.b7214ap-6f);
  p = fma_fast(p, s, 0x1.ce23d2p-4f);
  p = fma_fast(p, s, -0x1.81271ap-2f);
  p = fma_fast(p, s, 0x1.06eba8p-3f);
  const int32_t bits = (int32_t)bits_of(magnitude), four = 0x40800000;
  const float t = float_of(bits < four ? bits : four);
  float q = -0x1.c46706p-13f;
  q = fma_fast(q, t, 0x1.a7409cp-9f);
  q = fma_fast(q, t, -0x1.77c4cap-6f);
  q = fma_fast(q, t, 0x1.af7024p-4f);
  q = fma_fast(q, t, 0x1.457602p-1f);
  q = fma_fast(q, t, 0x1.20e752p+0f);
  const float large = __builtin_copysignf(1.0f - exp_normal(-t * q), x);
  // A NaN fails the comparison and stays one in the polynomial.
  return magnitude >= 0.85f ? large : fma_fast(x, p, x);
}

//@ erf_coarse_f32: float_bits, fma
// erf for sums with one that are rounded to 16 bits: 1 + erf(x) within 1e-4 of itself down to x = -2.5, and within 6e-8
// below. erf(t) = 1 - 2^-(t*Q(t)) up to 4; Q within 5e-5, and 2^r within 3e-6 for |r| <= 1/2, are minimax fits made for
// this file.
static inline float erf_coarse_f32(float x) {
  const float magnitude = __builtin_fabsf(x), t = 4.0f < magnitude ? 4.0f : magnitude;  // a NaN stays
  float q = -0x1.ac8172p-13f;
  q = fma_fast(q, t, 0x1.e40eb8p-9f);
  q = fma_fast(q, t, -0x1.e86564p-6f);
  q = fma_fast(q, t, 0x1.2cbfd4p-3f);
  q = fma_fast(q, t, 0x1.d758aap-1f);
  q = fma_fast(q, t, 0x1.a097a6p+0f);
  const float magic = 0x1.8p23f + 127.0f, shifted = fma_fast(-t, q, magic), r = fma_fast(-t, q, magic - shifted);
  float p = 0x1.3a02ccp-7f;
  p = fma_fast(p, r, 0x1.c9fc46p-5f);
  p = fma_fast(p, r, 0x1.ec0378p-3f);
  p = fma_fast(p, r, 0x1.62e12cp-1f);
  p = fma_fast(p, r, 1.0f);
  return __builtin_copysignf(fma_fast(-p, float_of(bits_of(shifted) << 23), 1.0f), x);
}

//@ philox
// Philox 4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). The key is the
// seed; the counter is the number of the block of four words; `offset` counts words.
static inline int32_t philox(int64_t seed, int64_t offset) {
  const uint64_t block = (uint64_t)offset >> 2;
  uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)((uint64_t)seed >> 32);
  uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = 0, c3 = 0;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = (uint64_t)0xD2511F53u * c0, product1 = (uint64_t)0xCD9E8D57u * c2;
    const uint32_t next0 = (uint32_t)(product1 >> 32) ^ c1 ^ key0, next2 = (uint32_t)(product0 >> 32) ^ c3 ^ key1;
    c1 = (uint32_t)product1;
    c3 = (uint32_t)product0;
    c0 = next0;
    c2 = next2;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  const int word = (int)(offset & 3);
  return (int32_t)(word == 0 ? c0 : word == 1 ? c1 : word == 2 ? c2 : c3);
}
