"""Creating, converting and exchanging tensors: expressions whose answers, errors included, are torch's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import retrograd  # noqa: E402 - torch may be missing

pytestmark = pytest.mark.oracle

EXPRESSIONS = """
torch.arange(float('nan'))
torch.arange('a')
torch.arange(3,dtype=torch.bool)
torch.arange(3,dtype=torch.complex64)
torch.arange(3j)
torch.arange(5,dtype=torch.uint8)
torch.arange(300,dtype=torch.uint8)[-3:]
torch.arange(0,1,0.3,dtype=torch.int64)
torch.arange(2.5)
torch.arange(2.5,dtype=torch.int32)
torch.arange(True)
torch.arange(torch.tensor(3))
torch.arange(torch.tensor(3.))
torch.arange(5,0)
torch.arange(0,5,0)
torch.arange(start=1,end=4)
torch.arange(end=4)
torch.arange(1,end=4,step=2)
torch.linspace(0,1,3,dtype=torch.bool)
torch.linspace(0,1j,3)
torch.linspace(0,1j,3,dtype=torch.float32)
torch.linspace(0,1,3,dtype=torch.int32)
torch.linspace(torch.tensor([0.]),1,3)
torch.linspace(0,1,3,out=torch.empty(0,dtype=torch.float64),dtype=torch.float32)
torch.logspace(0,1j,3)
torch.logspace(0,3,4,base=-2)
torch.eye(2,-1)
torch.eye(2.)
torch.eye(2,3,dtype=torch.complex64)
torch.eye(2,out=torch.empty(0,dtype=torch.int32))
torch.zeros(2,-1)
torch.ones(2,-1)
torch.zeros(2.)
torch.zeros('a')
torch.zeros((2,'a'))
torch.zeros(2,dtype='float32')
torch.zeros(2,foo=1)
torch.zeros()
torch.zeros(())
torch.zeros([2,3])
torch.zeros(torch.tensor(2))
torch.zeros(torch.Size([2]))
torch.zeros(2,out=torch.empty(0),dtype=torch.float64)
torch.zeros(2,pin_memory=True)
torch.zeros(2,dtype=torch.int64,requires_grad=True)
torch.zeros(2,device='foo')
torch.full((2,),True)
torch.full((2,),1j)
torch.full((2,),torch.tensor(2))
torch.full((2,),torch.tensor([2]))
torch.full((2,),1,out=torch.empty(0))
torch.full((2,),'a')
torch.full(2,1)
torch.full((-2,),1)
torch.full_like(torch.zeros(2),1j)
torch.full_like(torch.zeros(2,dtype=torch.int32),1.5)
torch.scalar_tensor(1j)
torch.scalar_tensor(1.5,dtype=torch.int32)
torch.empty(2,memory_format=torch.channels_last)
torch.empty((1,2,2,2),memory_format=torch.channels_last).stride()
torch.empty(2,memory_format=torch.preserve_format)
torch.empty_strided((2,3),(1,2)).stride()
torch.empty_strided((2,3),(1,))
torch.empty_strided((2,3),(-1,2))
torch.empty_strided((2,3),(0,1)).stride()
torch.empty_strided((2,3),(3,2)).stride()
torch.zeros(2,3).t().new_empty_strided((2,),(3,)).stride()
torch.zeros_like(torch.zeros(2,3).t(),memory_format=torch.contiguous_format).stride()
torch.zeros_like(torch.zeros(1,2,2,2),memory_format=torch.channels_last).stride()
torch.zeros_like([1])
torch.zeros(2).new_zeros(-1)
torch.zeros(2).new_full((2,),1j)
torch.zeros(2).new_tensor([1,2])
torch.zeros(2,dtype=torch.int32).new_tensor([1.5,2])
torch.zeros(2).new([1,2])
torch.tensor([torch.tensor(1.),torch.tensor(2.)])
torch.tensor([x,x])
torch.tensor([x[:1],x[:1]])
torch.tensor([[torch.tensor(1),2.5]])
torch.tensor([np.float32(1),2])
torch.tensor(np.int8(1))
torch.tensor([np.arange(2),np.arange(2)])
torch.tensor(1,dtype='float32')
torch.tensor(None)
torch.tensor([[1],[1,2]])
torch.tensor(range(3))
torch.tensor(1,foo=2)
torch.zeros(2,dtype=float)
torch.zeros(2,dtype=np.float32)
torch.as_tensor([1,2],dtype=float)
torch.asarray(a,copy=True)
torch.asarray(a,dtype=torch.float32,copy=False)
torch.asarray([1,2],copy=False)
torch.asarray(x,copy=False) is x
torch.asarray(x,requires_grad=True)
torch.asarray(x,dtype=torch.float64,copy=False)
torch.asarray(5)
torch.asarray(bytes(8),dtype=torch.int32)
torch.asarray('a')
torch.asarray(np.float32(3))
torch.frombuffer(bytearray(8),dtype=torch.int32,count=1,offset=4)
torch.frombuffer(bytearray(7),dtype=torch.int32)
torch.frombuffer(bytearray(0),dtype=torch.int32)
torch.frombuffer(bytearray(8),dtype=torch.int32,count=3)
torch.frombuffer(bytearray(8),dtype=torch.int32,offset=8)
torch.frombuffer(5,dtype=torch.int32)
torch.frombuffer(bytearray(8))
torch.frombuffer(bytearray(8),dtype=torch.float32,requires_grad=True)
torch.from_dlpack(a)
torch.from_dlpack(x).data_ptr()==x.data_ptr()
x.__dlpack_device__()
np.from_dlpack(x)
xr.__dlpack__()
torch.from_dlpack(5)
x.type()
x.type('torch.DoubleTensor')
x.type(torch.int32)
x.type(torch.DoubleTensor)
x.type('foo')
torch.FloatTensor([1,2])
torch.FloatTensor(2,3).shape
torch.LongTensor([1.5])
torch.FloatTensor()
torch.FloatTensor(torch.Size([2])).shape
torch.FloatTensor(xr)
torch.LongTensor(x)
torch.FloatTensor(a)
isinstance(x,torch.FloatTensor),isinstance(x,torch.DoubleTensor),isinstance(5,torch.FloatTensor)
torch.FloatTensor.dtype
issubclass(torch.FloatTensor,torch.Tensor)
(torch.HalfTensor([1]), torch.BFloat16Tensor([1]), torch.BoolTensor([1]), torch.ByteTensor([1]), torch.CharTensor([1]))
torch.is_nonzero(torch.tensor([1.]))
torch.is_nonzero(torch.tensor([1.,2]))
x.is_nonzero()
(torch.is_same_size(x,x), x.is_same_size(torch.zeros(2)))
(torch.is_conj(x), torch.is_neg(x), torch.is_inference(x), torch.is_storage(x), torch.is_signed(x))
torch.is_floating_point(3)
torch.numel(3)
x.to('foo')
x.to(dtype='float32')
x.to() is x
x.to(foo=1)
x.to(torch.float64,copy=True)
xr.to(x.double())
x.to('cpu',torch.float64,False,True)
x.to(torch.float32) is x
x.to(torch.float32,copy=True) is x
x.to(memory_format=torch.channels_last)
x.to(other=x.double())
x.to(device='cpu',dtype=torch.int32)
x.float(memory_format=torch.preserve_format)
torch.ones(2,3).t().to(torch.float64).stride()
torch.ones(2,3).t().to(torch.float64,memory_format=torch.contiguous_format).stride()
torch.zeros(1,2,2,2).to(memory_format=torch.channels_last).stride()
torch.zeros(1,2,2,2)[...,::2].to(torch.float64).stride()
torch.zeros(3).expand(2,3).to(torch.float64).stride()
torch.tensor([1.7,-1.7,300.,float('nan')]).to(torch.uint8)
torch.tensor([1+2j]).to(torch.float32)
torch.tensor([2.**40]).to(torch.int32)
torch.tensor([1e10]).to(torch.int16)
torch.tensor([float('inf')]).int()
x.imag
x.cpu() is x
x.is_pinned()
x.clone(memory_format=torch.contiguous_format)
torch.bernoulli(xr,0.5).grad_fn.name()
torch.poisson(xr).grad_fn.name()
torch.normal(xr,xr).grad_fn.name()
torch.normal(1.,xr).grad_fn.name()
xr.clone().bernoulli_(torch.tensor([.1,.2]))
torch.bernoulli(torch.tensor([1,0]))
torch.bernoulli(torch.tensor([1.5]))
torch.poisson(torch.tensor([1,2]))
torch.poisson(torch.tensor([-1.]))
torch.normal(0.,-1.,(2,))
torch.normal(torch.zeros(2),torch.tensor([-1.,1]))
xr.clone().uniform_(2,1)
torch.randint(5,2,(3,))
torch.randperm(-1)
torch.randperm(3.)
torch.manual_seed('a')
torch.set_rng_state(5)
torch.fill(x,torch.tensor([3.]))
torch.fill(xr,torch.tensor(3.,requires_grad=True))
torch.full_like(torch.ones((),dtype=torch.int64),0.5,requires_grad=True)
torch.full_like(x,0.5,requires_grad=True)
x.new_full((2,),0.5,requires_grad=True)
x.long().new_full((2,),0.5,requires_grad=True)
torch.linspace(0,1,3,dtype=torch.int64,requires_grad=True)
torch.linspace(0,1,3,requires_grad=True)
torch.arange(3,requires_grad=True)
torch.eye(2,requires_grad=True)
torch.asarray([1,2],requires_grad=True)
torch.asarray(np.arange(3),requires_grad=True)
x.new_full((2,),torch.tensor(3))
torch.full((2,3),7,dtype=torch.float16)
torch.zeros(2,3,dtype=torch.bool,device='cpu',layout=torch.strided)
torch.ones_like(torch.zeros(2,3).t()).stride()
torch.empty_like(torch.zeros(3).expand(2,3)).stride()
torch.zeros_like(torch.zeros(4,6)[::2,::3]).stride()
torch.rand_like(torch.zeros(4,6)[::2,::3]).stride()
""".strip().split("\n")


def names(library: Any) -> dict[str, Any]:
    return {
        "torch": library,
        "np": np,
        "x": library.arange(3.0),
        "a": np.arange(3.0),
        "xr": library.tensor([0.2, 0.5, 0.7], requires_grad=True),
    }


def described(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [described(one) for one in value]
    if hasattr(value, "stride") and hasattr(value, "dtype"):
        node = None if value.grad_fn is None else value.grad_fn.name()
        return str(value.dtype), tuple(value.shape), value.stride(), str(value.tolist()), value.requires_grad, node
    return str(value).replace("retrograd", "torch")


def answer(library: Any, expression: str) -> Any:
    """Evaluate an expression with one of the libraries; an error is its class and its first words."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return described(eval(expression, names(library)))
    except Exception as error:
        return type(error).__name__, str(error).split("\nHint")[0].split("but expected one of")[0]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_same_answer(expression: str) -> None:
    assert answer(retrograd, expression) == answer(torch, expression)
