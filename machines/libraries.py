"""What passes and the operators of torch both call the libraries behind ATen by."""

MKL = "mkl"
"""Stands among the elements of `packed_weights` where MKL arranges matrices of float32."""
LSTM = 2
"""The number of the LSTM among the modes of `aten::mkldnn_rnn_layer`."""
